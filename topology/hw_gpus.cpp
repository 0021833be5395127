#include <algorithm>
#include <map>

#include "topology/hw_build.hpp"
#include "topology/names.hpp"
#include "topology/pci_ids.hpp"
#include "topology/rates.hpp"

namespace weft {
namespace {

/// Libraries whose os-devices mean one device each, best informed first.
constexpr std::string_view kLibraries[] = {"cuda", "nvml", "rsmi", "ze", "opencl"};

int library_of(const HwObject& object) {
  for (int i = 0; i < 5; ++i)
    if (object.name.starts_with(kLibraries[i]) && object.name.size() > kLibraries[i].size() &&
        object.name[kLibraries[i].size()] >= '0' && object.name[kLibraries[i].size()] <= '9')
      return i;
  return -1;
}

void take_info(const HwObject& device, Gpu& gpu, std::size_t& bytes) {
  const auto first_of = [&](std::initializer_list<std::string_view> keys) -> std::string_view {
    for (const std::string_view key : keys)
      if (const std::string_view value = device.info(key); !value.empty()) return value;
    return {};
  };
  if (gpu.model.empty()) gpu.model = first_of({"GPUModel", "LevelZeroModel"});
  if (gpu.uuid.empty())
    gpu.uuid = first_of({"NVIDIAUUID", "AMDUUID", "LevelZeroUUID", "LevelZeroDeviceUUID"});
  if (gpu.vendor.empty()) {
    const std::string_view vendor = first_of({"GPUVendor", "LevelZeroVendor"});
    for (const std::string_view known : {"NVIDIA", "AMD", "Intel"})
      if (vendor.find(known) != std::string_view::npos) gpu.vendor = known;
  }
  // hwloc gives these in units of 1024 bytes.
  const std::string_view size =
      first_of({"CUDAGlobalMemorySize", "RSMIVRAMSize", "LevelZeroHBMSize", "LevelZeroDDRSize",
                "OpenCLGlobalMemorySize"});
  if (bytes == 0) bytes = bytes_of_kib(size);
}

}  // namespace

bool is_gpu_os_device(const HwObject& object) {
  return object.type == HwType::OsDevice && library_of(object) >= 0;
}

std::vector<FoundGpu> gpus_of(const HwTree& tree, std::optional<std::uint32_t> function,
                              const std::vector<std::uint32_t>& os_devices) {
  std::vector<std::uint32_t> by_library[5];
  for (const std::uint32_t os : os_devices) {
    const int library = library_of(tree.objects[os]);
    if (library >= 0) by_library[library].push_back(os);
  }
  // OpenCL may list a chip where another library lists its tiles, and once per platform: it counts
  // only where nothing else is there.
  std::size_t count = function ? 1 : 0;
  for (int i = 0; i < 4; ++i) count = std::max(count, by_library[i].size());
  if (!function && count == 0 && !by_library[4].empty()) count = 1;

  std::vector<FoundGpu> found(count);
  for (std::size_t n = 0; n < count; ++n) {
    FoundGpu& gpu = found[n];
    for (const auto& devices : by_library) {
      if (devices.empty()) continue;
      const std::uint32_t os = devices[std::min(n, devices.size() - 1)];
      take_info(tree.objects[os], gpu.gpu, gpu.memory_bytes);
      if (devices.size() == count) gpu.objects.push_back(os);
    }
    if (!function) continue;
    const HwObject& pci = tree.objects[*function];
    gpu.objects.push_back(*function);
    gpu.order = pci.os_index;
    if (pci.has_address) gpu.gpu.pci = pci.pci;
    if (const std::string vendor = gpu_vendor(pci.pci_vendor); !vendor.empty())
      gpu.gpu.vendor = vendor;
    const std::string_view device = pci.info("PCIDevice");
    if (gpu.gpu.model.empty()) gpu.gpu.model = trade_name(device.empty() ? pci.name : device);
    if (gpu.memory_bytes == 0) {
      gpu.memory_bytes = gpu_memory_of(gpu.gpu.model);
      if (gpu.memory_bytes == 0) gpu.memory_bytes = gpu_memory_of(device);
    }
    gpu.shares_host_memory = shares_host_memory(pci.pci_vendor, pci.pci_device, gpu.gpu.model);
  }
  return found;
}

void add_gpus(HwBuild& build, std::vector<FoundGpu> found) {
  Machine& machine = build.machine;
  std::stable_sort(found.begin(), found.end(), [](const FoundGpu& a, const FoundGpu& b) {
    if (!a.gpu.pci && !b.gpu.pci) return a.order < b.order;
    return a.gpu.pci && b.gpu.pci ? *a.gpu.pci < *b.gpu.pci : a.gpu.pci.has_value();
  });

  // GPU memories that the system shows as NUMA nodes: by PCI address where stated; else in the
  // order the kernel gives them, from the highest number down.
  std::vector<MemoryId> nodes;
  std::map<PciAddress, MemoryId> node_by_address;
  for (const auto& [object, memory] : build.memory_of) {
    if (machine.memories[memory.value].kind != MemoryKind::Gpu) continue;
    const auto address = parse_pci_address(build.tree.objects[object].info("PCIBusID"));
    if (address)
      node_by_address[*address] = memory;
    else
      nodes.push_back(memory);
  }
  std::sort(nodes.begin(), nodes.end(), [&](MemoryId a, MemoryId b) {
    return machine.memories[a.value].os_index > machine.memories[b.value].os_index;
  });
  std::size_t next_node = 0;

  std::map<std::uint32_t, std::vector<GpuId>> by_chip;
  for (FoundGpu& gpu : found) {
    const GpuId id{static_cast<std::uint32_t>(machine.gpus.size())};
    by_chip[gpu.chip].push_back(id);
    for (const std::uint32_t object : gpu.objects) build.node_of.emplace(object, id);
    if (gpu.shares_host_memory && !gpu.gpu.near.empty()) {
      gpu.gpu.memory = gpu.gpu.near.front();
    } else if (gpu.gpu.pci && node_by_address.count(*gpu.gpu.pci)) {
      gpu.gpu.memory = node_by_address[*gpu.gpu.pci];
    } else if (next_node < nodes.size() && gpu.gpu.vendor == "NVIDIA") {
      gpu.gpu.memory = nodes[next_node++];
    } else {
      gpu.gpu.memory = MemoryId{static_cast<std::uint32_t>(machine.memories.size())};
      Memory memory;
      memory.kind = MemoryKind::Gpu;
      memory.bytes = gpu.memory_bytes;
      machine.memories.push_back(std::move(memory));
    }
    Memory& memory = machine.memories[gpu.gpu.memory.value];
    if (memory.kind == MemoryKind::Gpu) memory.gpu = id;
    gpu.link.a = gpu.parent;
    gpu.link.b = id;
    machine.gpus.push_back(std::move(gpu.gpu));
    machine.links.push_back(gpu.link);
  }
  for (const auto& [chip, ids] : by_chip)
    for (const GpuId id : ids)
      for (const GpuId other : ids)
        if (id != other) machine.gpus[id.value].shares_with.push_back(other);
}

}  // namespace weft
