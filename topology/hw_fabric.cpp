#include <algorithm>
#include <cmath>

#include "topology/hw_build.hpp"
#include "topology/pci_ids.hpp"
#include "topology/rates.hpp"

namespace weft {
namespace {

// Matrices are in MB/s. A value above 10 TB/s is a marker for "itself", not a link.
constexpr std::uint64_t kMostMegabytes = 10'000'000;

double per_link(const Machine& machine, LinkKind kind, Node end) {
  if (kind == LinkKind::Xgmi) return rates::kXgmiLink;
  if (end.kind != NodeKind::Gpu) return 0;
  return rates::nvlink(nvlink_generation_of(machine.gpus[end.index].model));
}

void add_links(HwBuild& build, const HwMatrix& matrix, LinkKind kind, const HwMatrix* hops) {
  const std::size_t n = matrix.objects.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) {
      const std::uint64_t there = matrix.values[i * n + j], back = matrix.values[j * n + i];
      if (there == 0 && back == 0) continue;
      if (there > kMostMegabytes || back > kMostMegabytes) continue;
      if (hops && hops->objects == matrix.objects && hops->values[i * n + j] > 1) continue;
      const auto a = build.node_of.find(matrix.objects[i]);
      const auto b = build.node_of.find(matrix.objects[j]);
      if (a == build.node_of.end() || b == build.node_of.end() || a->second == b->second) continue;
      const LinkId id = build.add_link(kind, a->second, b->second, 1e6 * static_cast<double>(there),
                                       rates::kNvlinkLatency, Provenance::Reported);
      Link& link = build.machine.links[id.value];
      link.bytes_per_second[1] = 1e6 * static_cast<double>(back);
      double one = per_link(build.machine, kind, link.a);
      if (one == 0) one = per_link(build.machine, kind, link.b);
      if (kind == LinkKind::Nvlink && one > 0)
        link.width = static_cast<std::uint32_t>(std::lround(link.bytes_per_second[0] / one));
      if (kind == LinkKind::Nvlink)
        for (const Node end : {link.a, link.b})
          if (end.kind == NodeKind::Gpu && link.generation == 0)
            link.generation = nvlink_generation_of(build.machine.gpus[end.index].model);
    }
}

}  // namespace

void add_fabric(HwBuild& build) {
  const auto find = [&](std::string_view name) -> const HwMatrix* {
    for (const HwMatrix& matrix : build.tree.matrices)
      if (matrix.name == name) return &matrix;
    return nullptr;
  };
  if (const HwMatrix* matrix = find("NVLinkBandwidth"))
    add_links(build, *matrix, LinkKind::Nvlink, nullptr);
  if (const HwMatrix* matrix = find("XGMIBandwidth"))
    add_links(build, *matrix, LinkKind::Xgmi, find("XGMIHops"));
  // Intel's Xe Link is a fabric of the same sort and has no kind of its own here.
  if (const HwMatrix* matrix = find("XeLinkBandwidth"))
    add_links(build, *matrix, LinkKind::Xgmi, nullptr);
}

}  // namespace weft
