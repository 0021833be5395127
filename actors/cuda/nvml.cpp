#include "actors/cuda/nvml.hpp"

#include <dlfcn.h>

#include <memory>

namespace weft {
namespace {

// NVML's interface as its reference manual gives it (docs.nvidia.com/deploy/nvml-api): declared
// here, because the toolkit need not bring nvml.h and nothing may be linked against the driver.
using Device = void*;
constexpr int kSuccess = 0, kInvalidArgument = 2;
constexpr unsigned kMostLinks = 18;       // NVML_NVLINK_MAX_LINKS
constexpr unsigned kFieldLinkSpeed = 90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON
constexpr unsigned kModeProhibited = 2;   // NVML_COMPUTEMODE_PROHIBITED

struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device;
  unsigned device_id, subsystem_id;
  char bus_id[32];
};

struct MemoryInfo {
  unsigned long long total, free, used;
};

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type;  // 0 double, 1 unsigned int, 2 unsigned long, 3 unsigned long long
  int result;
  union {
    double real;
    unsigned int number;
    unsigned long long_number;
    unsigned long long longest_number;
    long long whole;
  } value;
};

struct LibraryCloser {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, LibraryCloser>;

/// NVML, loaded and initialised; `problem()` says why not.
class Nvml {
 public:
  explicit Nvml(const std::string& library)
      : library_(dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
    if (!library_) {
      const char* error = dlerror();
      problem_ = "NVML cannot be loaded (" + std::string(error ? error : library) + ")";
      return;
    }
    const auto init = find<int (*)()>("nvmlInit_v2");
    if (!init) {
      problem_ = library + " is no NVML: it has no nvmlInit_v2";
      return;
    }
    if (const int result = init(); result != kSuccess) {
      problem_ = "NVML does not start: " + text_of(result);
      return;
    }
    is_started_ = true;
  }
  ~Nvml() {
    if (!is_started_) return;
    if (const auto shutdown = find<int (*)()>("nvmlShutdown")) shutdown();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] const std::string& problem() const { return problem_; }

  /// Calls a function if this version has it. False where it is missing or fails.
  template <class... Arguments>
  bool ask(const char* name, Arguments... arguments) const {
    return result_of(name, arguments...) == kSuccess;
  }

  template <class... Arguments>
  int result_of(const char* name, Arguments... arguments) const {
    const auto function = find<int (*)(Arguments...)>(name);
    return function ? function(arguments...) : kInvalidArgument;
  }

  [[nodiscard]] std::string text_of(int result) const {
    const auto text = find<const char* (*)(int)>("nvmlErrorString");
    return text ? text(result) : "error " + std::to_string(result);
  }

 private:
  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_.get(), name));
  }

  Library library_;
  std::string problem_;
  bool is_started_ = false;
};

/// Nothing for an address that a virtual machine hides: ffffffff:ff:ff.
std::optional<PciAddress> address_of(const PciInfo& info) {
  if (info.bus > 0xff || info.device > 0x1f || info.domain == 0xffffffffu) return std::nullopt;
  PciAddress address;
  address.domain = info.domain;
  address.bus = static_cast<std::uint8_t>(info.bus);
  address.device = static_cast<std::uint8_t>(info.device);
  return address;
}

/// NVML counts 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0 from 1 on.
std::uint32_t generation_of(unsigned version) {
  static constexpr std::uint32_t kGenerations[] = {0, 1, 2, 2, 3, 3, 4, 5};
  return version < std::size(kGenerations) ? kGenerations[version] : 0;
}

class Reader {
 public:
  explicit Reader(const Nvml& nvml) : nvml_(nvml) {}

  void run(NvmlFacts& facts) const {
    char driver[96] = {};
    if (nvml_.ask("nvmlSystemGetDriverVersion", driver, unsigned{sizeof driver}))
      facts.driver = driver;
    unsigned count = 0;
    if (const int result = nvml_.result_of("nvmlDeviceGetCount_v2", &count); result != kSuccess) {
      facts.problem = "NVML does not list GPUs: " + nvml_.text_of(result);
      return;
    }
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      // A GPU that has fallen off the bus, or that this process may not open.
      if (!nvml_.ask("nvmlDeviceGetHandleByIndex_v2", i, &device)) continue;
      facts.gpus.push_back(whole(device));
      if (facts.gpus.back().is_mig_enabled) instances(device, facts.gpus);
    }
  }

 private:
  void identity(Device device, GpuFact& fact) const {
    char text[96] = {};
    if (nvml_.ask("nvmlDeviceGetName", device, text, unsigned{sizeof text})) fact.name = text;
    char uuid[96] = {};
    if (nvml_.ask("nvmlDeviceGetUUID", device, uuid, unsigned{sizeof uuid})) fact.uuid = uuid;
    MemoryInfo memory{};
    if (nvml_.ask("nvmlDeviceGetMemoryInfo", device, &memory)) fact.memory_bytes = memory.total;
  }

  [[nodiscard]] GpuFact whole(Device device) const {
    GpuFact fact;
    identity(device, fact);
    PciInfo pci{};
    if (nvml_.ask("nvmlDeviceGetPciInfo_v3", device, &pci)) fact.pci = address_of(pci);
    int major = 0, minor = 0;
    if (nvml_.ask("nvmlDeviceGetCudaComputeCapability", device, &major, &minor))
      fact.compute_capability = static_cast<std::uint32_t>(10 * major + minor);
    unsigned mode = 0, pending = 0;
    if (nvml_.ask("nvmlDeviceGetMigMode", device, &mode, &pending)) fact.is_mig_enabled = mode == 1;
    unsigned compute_mode = 0;
    if (nvml_.ask("nvmlDeviceGetComputeMode", device, &compute_mode))
      fact.is_prohibited = compute_mode == kModeProhibited;
    unsigned is_c2c_enabled = 0;  // nvmlC2cModeInfo_v1_t is this one field
    if (nvml_.ask("nvmlDeviceGetC2cModeInfoV", device, &is_c2c_enabled))
      fact.has_c2c = is_c2c_enabled == 1;
    const auto number = [&](const char* function) {
      unsigned value = 0;
      return nvml_.ask(function, device, &value) && value <= 64 ? value : 0;
    };
    fact.pcie_generation = number("nvmlDeviceGetCurrPcieLinkGeneration");
    fact.pcie_width = number("nvmlDeviceGetCurrPcieLinkWidth");
    fact.max_pcie_generation = number("nvmlDeviceGetMaxPcieLinkGeneration");
    fact.max_pcie_width = number("nvmlDeviceGetMaxPcieLinkWidth");
    links(device, fact);
    return fact;
  }

  void links(Device device, GpuFact& fact) const {
    FieldValue speed{};
    speed.field = kFieldLinkSpeed;
    double rate = 0;
    if (nvml_.ask("nvmlDeviceGetFieldValues", device, 1, &speed) && speed.result == kSuccess &&
        speed.type == 1)
      rate = 1e6 * speed.value.number;
    for (unsigned i = 0; i < kMostLinks; ++i) {
      unsigned is_active = 0;
      if (!nvml_.ask("nvmlDeviceGetNvLinkState", device, i, &is_active) || is_active != 1) continue;
      NvlinkFact link;
      link.bytes_per_second = rate;
      unsigned version = 0;
      if (nvml_.ask("nvmlDeviceGetNvLinkVersion", device, i, &version))
        link.generation = generation_of(version);
      unsigned remote = 255;
      if (nvml_.ask("nvmlDeviceGetNvLinkRemoteDeviceType", device, i, &remote)) {
        if (remote == 0) link.remote = NvlinkRemote::Gpu;
        if (remote == 1) link.remote = NvlinkRemote::Cpu;
        if (remote == 2) link.remote = NvlinkRemote::Switch;
      }
      PciInfo pci{};
      if (nvml_.ask("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, i, &pci))
        link.pci = address_of(pci);
      fact.nvlinks.push_back(link);
    }
  }

  void instances(Device device, std::vector<GpuFact>& gpus) const {
    const GpuFact parent = gpus.back();
    unsigned most = 0;
    if (!nvml_.ask("nvmlDeviceGetMaxMigDeviceCount", device, &most)) return;
    for (unsigned i = 0; i < most && i < 64; ++i) {
      Device instance = nullptr;
      if (!nvml_.ask("nvmlDeviceGetMigDeviceHandleByIndex", device, i, &instance)) continue;
      GpuFact fact;
      identity(instance, fact);
      if (fact.name.empty()) fact.name = parent.name + " MIG";
      fact.pci = parent.pci;
      fact.mig_parent = parent.uuid.empty() ? "?" : parent.uuid;
      fact.compute_capability = parent.compute_capability;
      fact.is_prohibited = parent.is_prohibited;
      fact.pcie_generation = parent.pcie_generation;
      fact.pcie_width = parent.pcie_width;
      fact.max_pcie_generation = parent.max_pcie_generation;
      fact.max_pcie_width = parent.max_pcie_width;
      gpus.push_back(std::move(fact));
    }
  }

  const Nvml& nvml_;
};

}  // namespace

NvmlFacts read_nvml(const std::string& library) {
  NvmlFacts facts;
  const Nvml nvml(library);
  facts.problem = nvml.problem();
  if (facts.problem.empty()) Reader(nvml).run(facts);
  return facts;
}

}  // namespace weft
