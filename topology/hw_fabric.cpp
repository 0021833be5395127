#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "topology/hw_build.hpp"
#include "topology/names.hpp"
#include "topology/pci_ids.hpp"
#include "topology/rates.hpp"

namespace weft {
namespace {

// Matrices are in MB/s. A value above 10 TB/s is a marker for "itself", not a link.
constexpr std::uint64_t kMostMegabytes = 10'000'000;

void add_matrix_links(const HwMatrix& matrix, LinkKind kind, const HwMatrix* hops,
                      std::vector<HwLink>& links) {
  const std::size_t n = matrix.objects.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) {
      const std::uint64_t there = matrix.values[i * n + j], back = matrix.values[j * n + i];
      if ((there == 0 && back == 0) || there > kMostMegabytes || back > kMostMegabytes) continue;
      if (hops && hops->objects == matrix.objects && hops->values[i * n + j] > 1) continue;
      HwLink link;
      link.kind = kind;
      link.a = matrix.objects[i];
      link.b = matrix.objects[j];
      link.there = 1e6 * static_cast<double>(there);
      link.back = 1e6 * static_cast<double>(back);
      links.push_back(link);
    }
}

std::vector<HwLink> all_links(const HwTree& tree) {
  std::vector<HwLink> links = tree.links;
  const auto find = [&](std::string_view name) -> const HwMatrix* {
    for (const HwMatrix& matrix : tree.matrices)
      if (matrix.name == name) return &matrix;
    return nullptr;
  };
  if (const HwMatrix* matrix = find("NVLinkBandwidth"))
    add_matrix_links(*matrix, LinkKind::Nvlink, nullptr, links);
  if (const HwMatrix* matrix = find("XGMIBandwidth"))
    add_matrix_links(*matrix, LinkKind::Xgmi, find("XGMIHops"), links);
  // Intel's Xe Link is a fabric of the same sort and has no kind of its own here.
  if (const HwMatrix* matrix = find("XeLinkBandwidth"))
    add_matrix_links(*matrix, LinkKind::Xgmi, nullptr, links);
  return links;
}

bool is_switch(const HwTree& tree, std::uint32_t object) {
  const HwObject& o = tree.objects[object];
  return o.type == HwType::Pci &&
         (o.subtype == "NVSwitch" ||
          pci_role(o.pci_class, o.pci_vendor, o.pci_device) == PciRole::NvSwitch);
}

/// NVSwitches that join the same GPUs work as one: a GPU's traffic is spread over all of them. Each
/// such group becomes one hub.
void add_switches(HwBuild& build, const std::vector<HwLink>& links) {
  std::map<std::uint32_t, std::set<std::uint32_t>> gpus_of;
  for (std::uint32_t i = 0; i < build.tree.objects.size(); ++i)
    if (is_switch(build.tree, i)) gpus_of[i];
  for (const HwLink& link : links)
    for (const auto& [end, other] : {std::pair(link.a, link.b), std::pair(link.b, link.a)})
      if (gpus_of.count(end) && !gpus_of.count(other)) gpus_of[end].insert(other);
  std::map<std::set<std::uint32_t>, HubId> groups;
  std::map<std::uint32_t, std::vector<std::uint32_t>> members;
  for (const auto& [object, gpus] : gpus_of) {
    auto found = groups.find(gpus);
    if (found == groups.end()) {
      const HubId id{static_cast<std::uint32_t>(build.machine.hubs.size())};
      Hub hub;
      hub.kind = HubKind::NvSwitch;
      build.machine.hubs.push_back(std::move(hub));
      found = groups.emplace(gpus, id).first;
    }
    build.node_of[object] = found->second;
    members[found->second.value].push_back(object);
  }
  for (const auto& [hub, objects] : members) {
    std::string& name = build.machine.hubs[hub].name;
    for (const std::uint32_t object : objects)
      name += (name.empty() ? "" : ", ") + to_string(build.tree.objects[object].pci);
    if (objects.size() == 1) continue;
    name = std::to_string(objects.size()) + " NVSwitches " + name;
    build.warn("nvswitches_bonded", std::to_string(objects.size()) +
                                        " NVSwitches that join the same GPUs are shown as one, " +
                                        to_string(Node(HubId{hub})));
  }
}

double per_link(const Machine& machine, LinkKind kind, Node end) {
  if (kind == LinkKind::Xgmi) return 0;  // not told by rate: reported rates do not follow widths
  if (end.kind != NodeKind::Gpu) return 0;
  return rates::nvlink(nvlink_generation_of(machine.gpus[end.index].model));
}

}  // namespace

void add_fabric(HwBuild& build) {
  const std::vector<HwLink> links = all_links(build.tree);
  add_switches(build, links);
  std::map<std::tuple<LinkKind, Node, Node>, LinkId> known;
  for (const HwLink& stated : links) {
    const auto a = build.node_of.find(stated.a), b = build.node_of.find(stated.b);
    if (a == build.node_of.end() || b == build.node_of.end() || a->second == b->second) continue;
    const bool swapped = b->second < a->second && b->second.kind == a->second.kind;
    const Node from = swapped ? b->second : a->second, to = swapped ? a->second : b->second;
    const auto [entry, is_new] = known.try_emplace({stated.kind, from, to});
    if (is_new)
      entry->second =
          build.add_link(stated.kind, from, to, 0, rates::kNvlinkLatency, stated.provenance);
    Link& link = build.machine.links[entry->second.value];
    link.bytes_per_second[0] += swapped ? stated.back : stated.there;
    link.bytes_per_second[1] += swapped ? stated.there : stated.back;
    link.width += stated.width;
  }
  for (const auto& [key, id] : known) {
    Link& link = build.machine.links[id.value];
    double one = per_link(build.machine, link.kind, link.a);
    if (one == 0) one = per_link(build.machine, link.kind, link.b);
    if (link.width == 0 && one > 0)
      link.width = static_cast<std::uint32_t>(std::lround(link.bytes_per_second[0] / one));
    if (link.kind != LinkKind::Nvlink) continue;
    for (const Node end : {link.a, link.b})
      if (end.kind == NodeKind::Gpu && link.generation == 0)
        link.generation = nvlink_generation_of(build.machine.gpus[end.index].model);
  }
}

}  // namespace weft
