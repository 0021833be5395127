#include <algorithm>

#include "topology/doctor.hpp"
#include "topology/gpu_facts.hpp"
#include "topology/names.hpp"
#include "topology/pci_ids.hpp"
#include "topology/quantity.hpp"

namespace weft {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class SystemDoctor {
 public:
  SystemDoctor(const Machine& machine, const SystemFacts& facts) : m_(machine), f_(facts) {}

  std::vector<Finding> run() {
    cpus();
    limits();
    devices();
    gpu_lists();
    peers();
    build();
    return std::move(findings_);
  }

 private:
  void add(std::string code, Severity severity, std::string text, std::string consequence,
           std::string remedy) {
    findings_.push_back(
        {std::move(code), severity, std::move(text), std::move(consequence), std::move(remedy)});
  }

  static std::vector<std::uint32_t> missing(const std::vector<std::uint32_t>& all,
                                            const std::vector<std::uint32_t>& some) {
    std::vector<std::uint32_t> rest;
    std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(rest));
    return rest;
  }

  void cpus() {
    const auto hidden = missing(f_.online_cpus, f_.allowed_cpus);
    if (!hidden.empty() && !f_.allowed_cpus.empty())
      add("cpuset_smaller", Severity::Warning,
          "this process may use " + std::to_string(f_.allowed_cpus.size()) + " of " +
              std::to_string(f_.online_cpus.size()) + " hardware threads (not " +
              format_cpu_list(hidden) + ")",
          "weft uses only those; devices near the others are reached across sockets",
          "widen the cpuset: taskset, the container's --cpuset-cpus, or the batch job's request");
    const auto nodes = missing(f_.online_nodes, f_.allowed_nodes);
    if (!nodes.empty() && !f_.allowed_nodes.empty())
      add("memory_nodes_disallowed", Severity::Warning,
          "memory nodes " + format_cpu_list(nodes) + " may not be used by this process",
          "memory near some sockets or GPUs is out of reach", "widen the cgroup's cpuset.mems");
    const auto usable = static_cast<double>(f_.allowed_cpus.size());
    if (f_.cpu_quota && usable > 0 && *f_.cpu_quota < usable - 0.01)
      add("cpu_quota", Severity::Warning,
          "the cgroup grants the time of " + std::to_string(*f_.cpu_quota).substr(0, 4) +
              " cores, the "
              "cpuset has " +
              std::to_string(f_.allowed_cpus.size()),
          "threads are stopped for milliseconds at a time: copies and kernels stall",
          "raise cpu.max (--cpus of the container), or give a cpuset of that size instead");
    if (usable > 0 && f_.load > 1.5 * usable)
      add("cores_oversubscribed", Severity::Warning,
          "about " + std::to_string(static_cast<int>(f_.load)) + " threads compete for " +
              std::to_string(f_.allowed_cpus.size()) + " hardware threads",
          "everything measured now is slower than the machine",
          "wait for the other work, or move it");
  }

  void limits() {
    const bool has_rdma = std::any_of(m_.nics.begin(), m_.nics.end(), [](const Nic& nic) {
      return nic.name.starts_with("mlx") || nic.name.starts_with("rdmap") ||
             nic.name.starts_with("hfi");
    });
    if (f_.memlock && *f_.memlock < 64 * kMiB)
      add("memlock_limit", has_rdma || !m_.gpus.empty() ? Severity::Warning : Severity::Note,
          "only " + format_bytes(*f_.memlock) + " of memory may be locked",
          "buffers for RDMA cannot be registered, large pinned buffers may fail",
          "ulimit -l unlimited, or LimitMEMLOCK=infinity of the service");
    if (f_.shm_bytes < 512 * kMiB)
      add("shm_small", m_.gpus.size() > 1 ? Severity::Warning : Severity::Note,
          f_.shm_bytes == 0 ? std::string("there is no /dev/shm")
                            : "/dev/shm holds only " + format_bytes(f_.shm_bytes),
          "NCCL falls back to slower paths between processes, or fails",
          "start the container with --shm-size=1g or --ipc=host");
  }

  void devices() {
    std::size_t hidden = 0, unplaced = 0;
    for (const SystemFacts::PciDevice& device : f_.pci) {
      const PciRole role = pci_role(device.pci_class, device.vendor, device.device);
      if (role == PciRole::Gpu) {
        const bool is_seen = std::any_of(m_.gpus.begin(), m_.gpus.end(),
                                         [&](const Gpu& gpu) { return gpu.pci == device.address; });
        hidden += !is_seen;
      }
      if (role != PciRole::Gpu && role != PciRole::Network) continue;
      if (device.numa_node < 0 && f_.online_nodes.size() > 1) ++unplaced;
      link(device, role);
    }
    if (hidden > 0)
      add("hwloc_plugin_missing", Severity::Broken,
          std::to_string(hidden) + " GPUs are on the PCI bus and hwloc does not show them",
          "they are not part of the machine weft works with",
          "install hwloc's PCI plugin (Debian: libhwloc-plugins); unset HWLOC_COMPONENTS");
    if (unplaced > 0)
      add("numa_unknown", Severity::Warning,
          std::to_string(unplaced) + " PCI devices do not say which NUMA node they are near",
          "placement near them is a guess",
          "update the firmware; in a virtual machine expose the NUMA "
          "topology");
  }

  void link(const SystemFacts::PciDevice& device, PciRole role) {
    const std::string name = to_string(device.address);
    if (device.width > 0 && device.width < device.max_width)
      add("link_narrow", Severity::Warning,
          name + " uses " + std::to_string(device.width) + " of " +
              std::to_string(device.max_width) + " PCIe lanes",
          "it gets that share of its bandwidth",
          "move it to a wider slot, reseat it, check bifurcation in the firmware");
    if (device.speed > 0 && device.speed < 0.99 * device.max_speed && !device.is_suspended)
      // GPUs lower the link's speed while they idle; adapters do not.
      add("link_slow", role == PciRole::Gpu ? Severity::Note : Severity::Warning,
          name + " runs its PCIe link at " + std::to_string(device.speed).substr(0, 4) + " of " +
              std::to_string(device.max_speed).substr(0, 4) + " GT/s",
          role == PciRole::Gpu ? "if it stays so under load, copies are that much slower"
                               : "it gets that share of its bandwidth",
          role == PciRole::Gpu ? "look again under load: weft topo --measure"
                               : "the slot may be of an older generation; check the firmware");
  }

  void gpu_lists() {
    std::vector<PciAddress> seen;
    for (const Gpu& gpu : m_.gpus)
      if (gpu.pci && gpu.vendor == "NVIDIA") seen.push_back(*gpu.pci);
    std::sort(seen.begin(), seen.end());
    // Instances of one GPU share its function.
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    // Libraries write domains with 16 or 32 bits.
    std::map<std::string, std::vector<PciAddress>> lists = f_.gpu_lists;
    for (auto& [library, list] : lists)
      for (PciAddress& address : list)
        for (const PciAddress& known : seen)
          if (is_same_function(address, known)) address = known;
    std::map<std::string, std::vector<PciAddress>> sorted = lists;
    for (auto& [library, list] : sorted) std::sort(list.begin(), list.end());
    // A GPU that has failed is missing from CUDA alone, one kept from a container from both.
    const bool are_given =
        sorted.count("CUDA") && sorted.count("NVML") && sorted["CUDA"] == sorted["NVML"];
    for (const auto& [library, list] : lists) {
      if (sorted[library] != seen) {
        const bool is_chosen = f_.has_visible_devices || (f_.mig && library == "CUDA");
        const Severity severity = is_chosen   ? Severity::Note
                                  : are_given ? Severity::Warning
                                              : Severity::Broken;
        std::string remedy = "look for Xid errors in the kernel's log";
        if (are_given)
          remedy = "check which GPUs the container or the virtual machine was given";
        else if (f_.has_visible_devices)
          remedy = "CUDA_VISIBLE_DEVICES is set to \"" + f_.visible_devices.substr(0, 60) + "\"";
        else if (is_chosen)
          remedy = "CUDA shows a process one MIG instance: CUDA_VISIBLE_DEVICES chooses it";
        add("gpus_not_all_seen", severity,
            library + " lists " + std::to_string(list.size()) + " GPUs, hwloc " +
                std::to_string(seen.size()),
            "some GPUs cannot be used, or their place is unknown; weft topo says which and why",
            remedy);
      } else if (sorted[library] != list) {
        add("gpu_order_differs", Severity::Warning,
            library + " counts GPUs in another order than the PCI bus",
            "gpu0 here is not device 0 there", "set CUDA_DEVICE_ORDER=PCI_BUS_ID");
      }
    }
    if (f_.mig)
      add("mig_on", Severity::Note, "a GPU is split by MIG",
          "a process sees one slice, and slices have no peer-to-peer",
          "nvidia-smi -mig 0 for whole GPUs");
  }

  void peers() {
    const auto pairs = [](const auto& list) {
      std::string text;
      for (const auto& [a, b] : list)
        text += (text.empty() ? "gpu" : ", gpu") + std::to_string(a) + "-gpu" + std::to_string(b);
      return text;
    };
    if (!f_.peers_missing.empty())
      add("peer_missing", Severity::Warning, "no direct copies between " + pairs(f_.peers_missing),
          "copies between them go through host memory",
          "disable ACS redirection and the IOMMU's translation for the GPUs, if that is allowed");
    if (!f_.peers_wrong.empty())
      add("peer_wrong", Severity::Broken,
          "direct copies between " + pairs(f_.peers_wrong) + " arrive damaged",
          "weft routes them through the host; other programs compute wrong results",
          "disable ACS or the IOMMU, update the firmware; set NCCL_P2P_DISABLE=1 until then");
  }

  void build() {
    if (!f_.is_optimised || f_.is_sanitised)
      add("debug_build", Severity::Warning,
          f_.is_sanitised ? "this weft is built with sanitizers"
                          : "this weft is built without "
                            "optimisation",
          "it is several times slower than it can be", "cmake --preset release");
  }

  const Machine& m_;
  const SystemFacts& f_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> diagnose_system(const Machine& machine, const SystemFacts& facts) {
  return SystemDoctor(machine, facts).run();
}

}  // namespace weft
