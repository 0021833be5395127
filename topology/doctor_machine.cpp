#include <algorithm>
#include <map>
#include <set>

#include "topology/describe.hpp"
#include "topology/doctor.hpp"
#include "topology/names.hpp"
#include "topology/quantity.hpp"

namespace weft {
namespace {

struct Advice {
  Severity severity;
  const char* consequence;
  const char* remedy;
};

/// What a warning of the importers means to somebody who runs programs there.
const Advice& advice_on(const std::string& code) {
  static const std::map<std::string, Advice> kAdvice = {
      {"not_connected",
       {Severity::Broken, "nothing can be copied to or from it", "add the missing links"}},
      {"package_without_cores",
       {Severity::Warning, "its memory and devices are only reached from other sockets",
        "run with a cpuset that has hardware threads of every socket whose devices are used"}},
      {"cpus_not_allowed",
       {Severity::Note, "fewer hardware threads than the machine has", "ask for a larger cpuset"}},
      {"memories_not_allowed",
       {Severity::Note, "less memory than the machine has",
        "ask for a larger set of memory nodes"}},
      {"io_locality_unknown",
       {Severity::Warning, "copies may cross sockets without weft knowing",
        "set the NUMA nodes of PCI devices in the firmware, or lay a file that names them over"}},
      {"sources_disagree",
       {Severity::Warning, "one of the two sources is of another machine or outdated",
        "make both on the same day on the same machine"}},
      {"nvlinks_hidden",
       {Severity::Warning, "NVLinks are not seen: routes between GPUs look slow",
        "use nvidia-smi topo -m instead of topo -mp"}},
      {"cuda_unavailable",
       {Severity::Note, "weft runs on the processor, or on emulated GPUs",
        "put right what the reason names, if there is a GPU"}},
      {"nvml_missing",
       {Severity::Note, "rates of NVLinks are assumed",
        "give the container the driver's libnvidia-ml (nvidia-container-toolkit)"}},
      {"nvlink_without_peer_access",
       {Severity::Warning, "copies between these GPUs go through the host",
        "start nvidia-fabricmanager, and see nvidia-smi -q for the state of the fabric"}},
      {"visible_devices_bad",
       {Severity::Warning, "fewer GPUs than meant", "correct CUDA_VISIBLE_DEVICES"}},
      {"gpu_not_on_pci",
       {Severity::Note, "its PCIe link is assumed",
        "show the container or virtual machine the PCI devices; install hwloc's PCI plugin"}},
      {"link_to_itself",
       {Severity::Warning, "NVLinks are there and cannot be used for routes",
        "lay the output of nvidia-smi topo -m over"}},
  };
  static const Advice kOther = {Severity::Note, "", ""};
  const auto found = kAdvice.find(code);
  return found == kAdvice.end() ? kOther : found->second;
}

void unequal_links(const Machine& machine, std::vector<Finding>& findings) {
  // The PCIe links of equal GPUs: one that is slower than its like has trained down or sits in
  // another slot.
  std::map<std::string, std::vector<std::pair<double, std::uint32_t>>> rates;
  for (const Link& link : machine.links)
    if (link.kind == LinkKind::Pcie && link.b.kind == NodeKind::Gpu &&
        link.provenance != Provenance::Assumed)
      rates[machine.gpus[link.b.index].model].emplace_back(link.bytes_per_second[0], link.b.index);
  for (auto& [model, list] : rates) {
    const double best = std::max_element(list.begin(), list.end())->first;
    for (const auto& [rate, gpu] : list)
      if (rate < 0.9 * best)
        findings.push_back(
            {"gpu_link_slower", Severity::Warning,
             to_string(Node(GpuId{gpu})) + " has a PCIe link of " + format_rate(rate) +
                 ", others of its kind one of " + format_rate(best),
             "copies to and from it take that much longer",
             "check slot, riser and firmware settings; an idle link may only be saving "
             "power: measure with weft topo --measure"});
  }
}

void uneven_places(const Machine& machine, std::vector<Finding>& findings) {
  std::size_t without = 0;
  for (const Socket& socket : machine.sockets) without += socket.memories.empty();
  if (without > 0)
    findings.push_back({"socket_without_memory", Severity::Warning,
                        std::to_string(without) + " of " + std::to_string(machine.sockets.size()) +
                            " sockets have no memory of their own",
                        "all their accesses cross the socket interconnect",
                        "populate the slots, or leave these sockets out"});
  bool is_hybrid = false;
  for (const Socket& socket : machine.sockets)
    for (const Core& core : socket.cores) is_hybrid |= core.efficiency >= 0;
  if (is_hybrid)
    findings.push_back({"hybrid_cores", Severity::Note,
                        "the processor has cores of different speed",
                        "equal shares of work do not take equal time", ""});
  std::set<std::uint32_t> sharing;
  for (std::uint32_t g = 0; g < machine.gpus.size(); ++g)
    if (!machine.gpus[g].shares_with.empty()) sharing.insert(g);
  if (!sharing.empty())
    findings.push_back({"gpu_partitions", Severity::Note,
                        std::to_string(sharing.size()) + " GPUs are parts of a chip they share",
                        "they share its PCIe link, power and perhaps memory", ""});
  std::size_t joined = 0, pairs = 0;
  std::set<std::pair<Node, Node>> linked;
  bool has_switch = false;
  for (const Link& link : machine.links)
    if (link.kind == LinkKind::Nvlink || link.kind == LinkKind::Xgmi) {
      linked.emplace(std::min(link.a, link.b), std::max(link.a, link.b));
      has_switch |= link.a.kind == NodeKind::Hub || link.b.kind == NodeKind::Hub;
    }
  for (std::uint32_t a = 0; a < machine.gpus.size(); ++a)
    for (std::uint32_t b = a + 1; b < machine.gpus.size(); ++b) {
      ++pairs;
      joined += linked.count({Node(GpuId{a}), Node(GpuId{b})});
    }
  if (!has_switch && joined > 0 && joined < pairs)
    findings.push_back({"fabric_uneven", Severity::Note,
                        "only " + std::to_string(joined) + " of " + std::to_string(pairs) +
                            " pairs of GPUs are joined directly",
                        "copies between the others go through the host",
                        "prefer groups of joined GPUs; see weft topo --format svg"});
}

}  // namespace

std::vector<Finding> diagnose_machine(const Machine& machine) {
  std::vector<Finding> findings;
  for (const Warning& warning : machine.warnings) {
    const Advice& advice = advice_on(warning.code);
    findings.push_back(
        {warning.code, advice.severity, warning.text, advice.consequence, advice.remedy});
  }
  std::map<std::string, std::vector<std::string>> unused;
  for (std::uint32_t g = 0; g < machine.gpus.size(); ++g)
    if (!machine.gpus[g].unused_reason.empty())
      unused[machine.gpus[g].unused_reason].push_back(to_string(Node(GpuId{g})));
  for (const auto& [reason, gpus] : unused) {
    std::string names;
    for (const std::string& gpu : gpus) names += (names.empty() ? "" : ", ") + gpu;
    findings.push_back(
        {"gpu_unused", Severity::Warning, names + " cannot be used: " + reason,
         "weft runs on the processor, or on emulated GPUs, in their place",
         "put right what the reason names: the driver, the container, or a weft built with "
         "this vendor's engine"});
  }
  unequal_links(machine, findings);
  uneven_places(machine, findings);
  return findings;
}

}  // namespace weft
