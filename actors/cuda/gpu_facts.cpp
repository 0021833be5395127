#include "actors/cuda/gpu_facts.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "actors/cuda/nvml.hpp"
#include "topology/names.hpp"

namespace weft {
namespace {

/// `13000` as `13.0`.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

bool has_kernel_driver() {
  // A container may show only one of them.
  for (const char* path : {"/proc/driver/nvidia/version", "/sys/module/nvidia", "/dev/nvidiactl"})
    if (access(path, F_OK) == 0) return true;
  return false;
}

std::string missing_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  const char* error = library ? nullptr : dlerror();
  const std::string text = error ? error : "libcuda.so.1 does not start";
  if (library) dlclose(library);
  if (has_kernel_driver())
    return "the NVIDIA driver is loaded and its library is not: " + text +
           "; give the container the driver's libraries (nvidia-container-toolkit)";
  return "the NVIDIA driver is not loaded: " + text;
}

/// Why `cudaGetDeviceCount` has failed, for a person.
std::string reason_of(cudaError_t error, const GpuFacts& facts) {
  const std::string text = cudaGetErrorString(error);
  switch (error) {
    case cudaErrorInsufficientDriver:
      if (facts.cuda_version == 0) return missing_driver();
      return "the NVIDIA driver is too old: it supports CUDA " + version_text(facts.cuda_version) +
             " and this weft is built with CUDA " + version_text(facts.runtime_version) +
             "; update the driver";
    case cudaErrorStubLibrary:
      return "libcuda.so.1 is the toolkit's stub, not the driver; take its folder out of "
             "LD_LIBRARY_PATH";
    case cudaErrorNoDevice:
      if (!has_kernel_driver())
        return "the NVIDIA driver is not loaded: libcuda.so.1 is there, the kernel module is not";
      if (facts.visible_devices)
        return "CUDA finds no GPU: CUDA_VISIBLE_DEVICES is \"" +
               printable(facts.visible_devices->substr(0, 60)) + "\"";
      return "CUDA finds no GPU (" + text + ")";
    case cudaErrorSystemNotReady:
      return "CUDA does not start: " + text +
             "; on machines with NVSwitches nvidia-fabricmanager has to run";
    case cudaErrorSystemDriverMismatch:
      return "CUDA does not start: " + text +
             "; the driver was updated and not reloaded: restart the machine";
    default:
      return "CUDA does not start: " + text + " (" + cudaGetErrorName(error) + ")";
  }
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

int attribute(cudaDeviceAttr name, int device, int otherwise) {
  int value = otherwise;
  if (cudaDeviceGetAttribute(&value, name, device) == cudaSuccess) return value;
  cudaGetLastError();  // an attribute the driver does not know is no error of ours
  return otherwise;
}

std::int64_t numa_node_of(const PciAddress& address) {
  std::ifstream file("/sys/bus/pci/devices/" + to_string(address) + "/numa_node");
  std::int64_t node = -1;
  return file >> node ? node : -1;
}

GpuFact fact_of(int device, int count) {
  GpuFact fact;
  fact.cuda_ordinal = device;
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
    cudaGetLastError();
    return fact;
  }
  fact.name = properties.name;
  fact.uuid = uuid_text(properties.uuid);
  fact.memory_bytes = properties.totalGlobalMem;
  fact.compute_capability = static_cast<std::uint32_t>(10 * properties.major + properties.minor);
  fact.is_integrated = properties.integrated != 0;
  PciAddress address;
  address.domain = static_cast<std::uint32_t>(properties.pciDomainID);
  address.bus = static_cast<std::uint8_t>(properties.pciBusID);
  address.device = static_cast<std::uint8_t>(properties.pciDeviceID);
  fact.pci = address;
  // Without NVML only the name tells an instance from a GPU.
  if (fact.name.find(" MIG ") != std::string::npos) {
    fact.mig_parent = "?";
    fact.uuid.replace(0, 3, "MIG");
  }
  fact.is_prohibited = attribute(cudaDevAttrComputeMode, device, cudaComputeModeDefault) ==
                       cudaComputeModeProhibited;
#if CUDART_VERSION >= 12020
  fact.numa_node = attribute(cudaDevAttrHostNumaId, device, -1);
#endif
  if (fact.numa_node < 0) fact.numa_node = numa_node_of(address);

  fact.peers.resize(static_cast<std::size_t>(count));
  for (int other = 0; other < count; ++other) {
    if (other == device) continue;
    PeerFact& peer = fact.peers[static_cast<std::size_t>(other)];
    int value = 0;
    if (cudaDeviceCanAccessPeer(&value, device, other) == cudaSuccess) peer.can_access = value != 0;
    if (cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrNativeAtomicSupported, device, other) ==
        cudaSuccess)
      peer.has_atomics = value != 0;
    if (cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, device, other) ==
        cudaSuccess)
      peer.performance = value;
    cudaGetLastError();
  }
  return fact;
}

void read_cuda(GpuFacts& facts) {
  facts.runtime_version = CUDART_VERSION;
  facts.lowest_capability = WEFT_CUDA_LOWEST;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) facts.visible_devices = visible;
  int version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess) facts.cuda_version = version;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (error != cudaSuccess || count == 0) {
    facts.cuda_problem = reason_of(error == cudaSuccess ? cudaErrorNoDevice : error, facts);
    return;
  }
  for (int device = 0; device < count; ++device) {
    facts.gpus.push_back(fact_of(device, count));
    if (facts.gpus.back().pci) facts.cuda_order.push_back(*facts.gpus.back().pci);
  }
}

}  // namespace

GpuFacts read_gpu_facts() {
  GpuFacts facts;
  read_cuda(facts);
  NvmlFacts nvml = read_nvml();
  for (GpuFact& gpu : nvml.gpus)
    if (gpu.pci && gpu.numa_node < 0) gpu.numa_node = numa_node_of(*gpu.pci);
  facts.nvml_problem = nvml.problem;
  facts.driver = nvml.driver;
  if (facts.nvml_problem.empty()) add_nvml_facts(facts, nvml.gpus);
  return facts;
}

}  // namespace weft
