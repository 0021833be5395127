#include "actors/cuda/link_flows.hpp"

#include <algorithm>

namespace weft {
namespace {

class Planner {
 public:
  Planner(const Machine& machine, const std::vector<bool>& is_usable)
      : m_(machine), is_usable_(is_usable) {}

  [[nodiscard]] std::optional<LinkFlows> plan(const Link& link) const {
    switch (link.kind) {
      case LinkKind::Pcie:
        return to_host(below(link.b));
      case LinkKind::C2c:
      case LinkKind::Nvlink:
        break;
      default:
        return std::nullopt;
    }
    if (link.a.kind == NodeKind::Socket) return to_host(below(link.b));
    if (link.b.kind == NodeKind::Socket) return turned(to_host(below(link.a)));
    if (link.a.kind == NodeKind::Gpu && link.b.kind == NodeKind::Gpu)
      return between(link.a, link.b);
    if (link.a.kind == NodeKind::Gpu) return between(link.a, beside(link.b, link.a));
    if (link.b.kind == NodeKind::Gpu) return turned(between(link.b, beside(link.a, link.b)));
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool is_usable(Node gpu) const { return is_usable_.at(gpu.index); }

  /// Usable GPUs at or below a node of the PCIe tree, one of each PCI function: partitions share
  /// its link.
  [[nodiscard]] std::vector<Node> below(Node top) const {
    std::vector<Node> found, open = {top};
    std::vector<bool> is_seen(m_.hubs.size());
    while (!open.empty()) {
      const Node node = open.back();
      open.pop_back();
      if (node.kind == NodeKind::Gpu) {
        const bool is_twice = std::any_of(found.begin(), found.end(), [&](Node other) {
          const auto& pci = m_.gpus[node.index].pci;
          return other == node || (pci && pci == m_.gpus[other.index].pci);
        });
        if (is_usable(node) && !is_twice) found.push_back(node);
      }
      if (node.kind != NodeKind::Hub || is_seen[node.index]) continue;
      is_seen[node.index] = true;
      for (const Link& link : m_.links)
        if (link.kind == LinkKind::Pcie && link.a == node) open.push_back(link.b);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  /// Another usable GPU of the same switch.
  [[nodiscard]] std::optional<Node> beside(Node hub, Node gpu) const {
    for (const Link& link : m_.links) {
      if (link.kind != LinkKind::Nvlink) continue;
      for (const auto& [end, other] : {std::pair(link.a, link.b), std::pair(link.b, link.a)})
        if (end == hub && other.kind == NodeKind::Gpu && other != gpu && is_usable(other))
          return other;
    }
    return std::nullopt;
  }

  [[nodiscard]] Node host_of(Node gpu) const {
    const std::vector<MemoryId>& near = m_.gpus[gpu.index].near;
    if (!near.empty()) return near.front();
    for (std::uint32_t i = 0; i < m_.memories.size(); ++i)
      if (m_.memories[i].kind != MemoryKind::Gpu && m_.memories[i].kind != MemoryKind::Disk)
        return MemoryId{i};
    return MemoryId{0};
  }

  [[nodiscard]] LinkFlow down(Node gpu) const { return {host_of(gpu), gpu}; }
  [[nodiscard]] LinkFlow up(Node gpu) const { return {gpu, host_of(gpu)}; }

  [[nodiscard]] std::optional<LinkFlows> to_host(const std::vector<Node>& gpus) const {
    if (gpus.empty() || m_.memories.empty()) return std::nullopt;
    LinkFlows load;
    for (const Node gpu : gpus) {
      load.under_test[0].push_back(down(gpu));
      load.under_test[1].push_back(up(gpu));
    }
    for (std::uint32_t g = 0; g < m_.gpus.size(); ++g) {
      const Node other = GpuId{g};
      if (!is_usable(other) || std::find(gpus.begin(), gpus.end(), other) != gpus.end()) continue;
      load.neighbours[0].push_back(down(other));
      load.neighbours[1].push_back(up(other));
    }
    return load;
  }

  [[nodiscard]] std::optional<LinkFlows> between(Node a, std::optional<Node> b) const {
    if (!b || !is_usable(a) || !is_usable(*b)) return std::nullopt;
    LinkFlows load;
    const LinkFlow there{a, *b}, back{*b, a};
    load.under_test[0] = {there};
    load.under_test[1] = {back};
    load.neighbours[0] = {back, down(a), down(*b)};
    load.neighbours[1] = {there, down(a), down(*b)};
    return load;
  }

  static std::optional<LinkFlows> turned(std::optional<LinkFlows> load) {
    if (load) {
      std::swap(load->under_test[0], load->under_test[1]);
      std::swap(load->neighbours[0], load->neighbours[1]);
    }
    return load;
  }

  const Machine& m_;
  const std::vector<bool>& is_usable_;
};

}  // namespace

std::optional<LinkFlows> flows_of_link(const Machine& machine, LinkId link,
                                       const std::vector<bool>& is_usable) {
  return Planner(machine, is_usable).plan(machine.links.at(link.value));
}

}  // namespace weft
