#include "topology/gpu_facts.hpp"

#include <algorithm>
#include <charconv>

#include "topology/names.hpp"

namespace weft {
namespace {

/// A UUID without the word before it: CUDA may call an instance `GPU-…` that NVML calls `MIG-…`.
std::string_view bare(std::string_view uuid) {
  if (uuid.starts_with("GPU-") || uuid.starts_with("MIG-")) uuid.remove_prefix(4);
  return uuid;
}

bool has_same_uuid(const GpuFact& a, const GpuFact& b) {
  return !a.uuid.empty() && bare(a.uuid) == bare(b.uuid);
}

bool has_same_address(const GpuFact& a, const GpuFact& b) {
  return a.pci && b.pci && is_same_function(*a.pci, *b.pci);
}

/// What NVML knows better, or alone.
void take_nvml(GpuFact& into, const GpuFact& nvml) {
  if (!into.pci) into.pci = nvml.pci;
  if (into.name.empty()) into.name = nvml.name;
  if (!nvml.uuid.empty()) into.uuid = nvml.uuid;
  if (into.memory_bytes == 0) into.memory_bytes = nvml.memory_bytes;
  if (into.numa_node < 0) into.numa_node = nvml.numa_node;
  if (!nvml.mig_parent.empty()) into.mig_parent = nvml.mig_parent;
  into.is_mig_enabled |= nvml.is_mig_enabled;
  into.is_prohibited |= nvml.is_prohibited;
  into.has_c2c |= nvml.has_c2c;
  into.pcie_generation = nvml.pcie_generation;
  into.pcie_width = nvml.pcie_width;
  into.max_pcie_generation = nvml.max_pcie_generation;
  into.max_pcie_width = nvml.max_pcie_width;
  into.nvlinks = nvml.nvlinks;
}

/// What CUDA shows of a GPU in MIG mode is one of its instances.
void mark_instances(GpuFacts& facts, const std::vector<GpuFact>& nvml) {
  for (GpuFact& gpu : facts.gpus)
    for (const GpuFact& whole : nvml)
      if (whole.is_mig_enabled && has_same_address(gpu, whole))
        gpu.mig_parent = whole.uuid.empty() ? "?" : whole.uuid;
}

}  // namespace

bool is_same_function(const PciAddress& a, const PciAddress& b) {
  const auto same_domain = [&] {
    if (a.domain == b.domain) return true;
    // One of the two is cut to 16 bits.
    const bool is_cut = a.domain <= 0xffff || b.domain <= 0xffff;
    return is_cut && (a.domain & 0xffff) == (b.domain & 0xffff);
  };
  return a.bus == b.bus && a.device == b.device && a.function == b.function && same_domain();
}

void add_nvml_facts(GpuFacts& facts, const std::vector<GpuFact>& nvml) {
  mark_instances(facts, nvml);
  const std::size_t of_cuda = facts.gpus.size();
  std::vector<bool> is_taken(of_cuda), is_merged(nvml.size());
  const auto merge_where = [&](auto is_same) {
    for (std::size_t n = 0; n < nvml.size(); ++n)
      for (std::size_t c = 0; c < of_cuda && !is_merged[n]; ++c) {
        if (is_taken[c] || facts.gpus[c].is_mig_instance() != nvml[n].is_mig_instance()) continue;
        if (!is_same(facts.gpus[c], nvml[n])) continue;
        is_taken[c] = is_merged[n] = true;
        take_nvml(facts.gpus[c], nvml[n]);
      }
  };
  merge_where(has_same_uuid);
  merge_where(has_same_address);
  for (std::size_t n = 0; n < nvml.size(); ++n) {
    if (!nvml[n].is_mig_instance() && nvml[n].pci) facts.nvml_order.push_back(*nvml[n].pci);
    if (!is_merged[n]) facts.gpus.push_back(nvml[n]);
  }
}

std::vector<int> cuda_ordinals(const Machine& machine, const GpuFacts& facts) {
  std::vector<int> ordinals(machine.gpus.size(), -1);
  std::vector<bool> is_taken(facts.gpus.size());
  const auto assign_where = [&](auto is_same) {
    for (std::size_t g = 0; g < machine.gpus.size(); ++g)
      for (std::size_t f = 0; f < facts.gpus.size() && ordinals[g] < 0; ++f) {
        const Gpu& gpu = machine.gpus[g];
        if (is_taken[f] || facts.gpus[f].cuda_ordinal < 0 || !gpu.unused_reason.empty()) continue;
        if (!is_same(gpu, facts.gpus[f])) continue;
        is_taken[f] = true;
        ordinals[g] = facts.gpus[f].cuda_ordinal;
      }
  };
  assign_where([](const Gpu& gpu, const GpuFact& fact) {
    return !gpu.uuid.empty() && !fact.uuid.empty() && bare(gpu.uuid) == bare(fact.uuid);
  });
  // A machine file may be without UUIDs; one with another UUID at this address is another GPU.
  assign_where([](const Gpu& gpu, const GpuFact& fact) {
    return (gpu.uuid.empty() || fact.uuid.empty()) && gpu.pci && fact.pci &&
           is_same_function(*gpu.pci, *fact.pci);
  });
  return ordinals;
}

std::optional<std::string> bad_visible_device(const GpuFacts& facts) {
  if (!facts.visible_devices || !facts.nvml_problem.empty()) return std::nullopt;
  const std::string_view text = *facts.visible_devices;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view entry = text.substr(begin, end - begin);
    begin = end + 1;
    while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
    while (!entry.empty() && entry.back() == ' ') entry.remove_suffix(1);
    // The usual ways to hide all.
    if (entry.empty() || entry == "-1" || entry == "NoDevFiles" || entry == "none")
      return std::nullopt;
    std::size_t number = 0;
    const auto [rest, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
    if (error == std::errc() && rest == entry.data() + entry.size()) {
      if (number < facts.nvml_order.size()) continue;
    } else if (entry.starts_with("MIG-GPU-")) {
      continue;  // the older way, `MIG-GPU-UUID/instance/instance`
    } else if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) {
      // A beginning is enough.
      if (std::any_of(facts.gpus.begin(), facts.gpus.end(),
                      [&](const GpuFact& gpu) { return gpu.uuid.starts_with(entry); }))
        continue;
    }
    return std::string(entry);
  }
  return std::nullopt;
}

}  // namespace weft
