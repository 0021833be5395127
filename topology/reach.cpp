#include "topology/reach.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace weft {

void warn_unreachable(Machine& machine) {
  constexpr std::string_view kCode = "not_connected";
  std::erase_if(machine.warnings, [&](const Warning& warning) { return warning.code == kCode; });

  const std::size_t sizes[] = {machine.sockets.size(), machine.memories.size(),
                               machine.gpus.size(),    machine.hubs.size(),
                               machine.nics.size(),    machine.disks.size()};
  std::vector<Node> nodes;
  std::size_t first[6];
  for (std::size_t kind = 0; kind < 6; ++kind) {
    first[kind] = nodes.size();
    for (std::uint32_t i = 0; i < sizes[kind]; ++i)
      nodes.emplace_back(static_cast<NodeKind>(kind), i);
  }
  std::vector<std::size_t> leader(nodes.size());
  std::iota(leader.begin(), leader.end(), std::size_t{0});
  const auto index = [&](Node n) { return first[static_cast<std::size_t>(n.kind)] + n.index; };
  const auto find = [&](std::size_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  const auto join = [&](Node a, Node b) {
    const std::size_t x = find(index(a)), y = find(index(b));
    leader[std::max(x, y)] = std::min(x, y);
  };
  for (const Link& link : machine.links)
    if (link.bytes_per_second[0] > 0 && link.bytes_per_second[1] > 0) join(link.a, link.b);
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i)
    if (machine.gpus[i].memory.is_valid()) join(GpuId{i}, machine.gpus[i].memory);
  for (std::uint32_t i = 0; i < machine.disks.size(); ++i)
    if (machine.disks[i].memory.is_valid()) join(DiskId{i}, machine.disks[i].memory);

  // Hubs that join nothing matter to nobody.
  std::map<std::size_t, std::vector<Node>> parts;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].kind != NodeKind::Hub) parts[find(i)].push_back(nodes[i]);
  if (parts.size() < 2) return;
  const auto largest = std::max_element(
      parts.begin(), parts.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::string text;
  std::size_t count = 0;
  for (const auto& [key, part] : parts) {
    if (key == largest->first) continue;
    for (const Node n : part)
      if (++count <= 8) text += (text.empty() ? "" : ", ") + to_string(n);
  }
  if (count > 8) text += " and " + std::to_string(count - 8) + " more";
  machine.warnings.push_back(
      {std::string(kCode),
       text + ": no working link leads from " + (count == 1 ? "it" : "them") + " to the rest"});
}

}  // namespace weft
