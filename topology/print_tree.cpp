#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "topology/describe.hpp"
#include "topology/discover.hpp"
#include "topology/names.hpp"
#include "topology/quantity.hpp"

namespace weft {
namespace {

constexpr std::size_t kLineWidth = 100;

/// Prints every node once, below the first node that a link joins it to, and afterwards the links
/// that no indentation shows.
class TreePrinter {
 public:
  explicit TreePrinter(const Machine& machine) : machine_(machine) {
    shown_link_.resize(machine.links.size());
    for (std::uint32_t i = 0; i < machine.links.size(); ++i) {
      at_[machine.links[i].a].push_back(i);
      at_[machine.links[i].b].push_back(i);
    }
  }

  std::string print() {
    text_ = "machine: " + (machine_.source.empty() ? "no source given" : machine_.source) + "\n";
    text_ += summary(machine_) + "\n";
    // Shallow-first: packages, then what hangs from none of them.
    roots<SocketId>(machine_.sockets.size());
    for (std::uint32_t i = 0; i < machine_.hubs.size(); ++i)
      if (machine_.hubs[i].kind == HubKind::Package) node(HubId{i}, 0, nullptr);
    roots<MemoryId>(machine_.memories.size());
    for (std::uint32_t i = 0; i < machine_.hubs.size(); ++i)
      if (machine_.hubs[i].kind == HubKind::HostBridge) node(HubId{i}, 0, nullptr);
    roots<GpuId>(machine_.gpus.size());
    roots<HubId>(machine_.hubs.size());
    roots<NicId>(machine_.nics.size());
    roots<DiskId>(machine_.disks.size());
    other_links();
    if (!machine_.warnings.empty()) text_ += "warnings:\n";
    for (const Warning& warning : machine_.warnings)
      text_ += "  " + warning.code + ": " + warning.text + "\n";
    return text_;
  }

 private:
  template <class NodeId>
  void roots(std::size_t count) {
    for (std::uint32_t i = 0; i < count; ++i) node(NodeId{i}, 0, nullptr);
  }

  /// A memory that its GPU's or disk's own line states.
  bool is_told_elsewhere(Node n) const {
    if (n.kind != NodeKind::Memory) return false;
    const Memory& memory = machine_.memories[n.index];
    if (memory.kind == MemoryKind::Gpu && memory.gpu.is_valid()) return true;
    return memory.kind == MemoryKind::Disk &&
           std::any_of(machine_.disks.begin(), machine_.disks.end(),
                       [&](const Disk& disk) { return disk.memory.value == n.index; });
  }

  void node(Node n, int depth, const Link* link) {
    if (is_told_elsewhere(n) || !shown_.emplace(n, true).second) return;
    std::string line(static_cast<std::size_t>(2 * depth), ' ');
    line += describe(machine_, n);
    if (link && link->kind != LinkKind::Bus) line += "  <- " + describe(*link);
    text_ += line + "\n";
    const auto links = at_.find(n);
    if (links == at_.end()) return;
    // Memories first, then the way down; fabric and socket links are listed at the end.
    for (const bool memories : {true, false})
      for (const std::uint32_t i : links->second) {
        const Link& below = machine_.links[i];
        const Node other = below.a == n ? below.b : below.a;
        if ((other.kind == NodeKind::Memory) != memories || !goes_down(n, other, below)) continue;
        if (shown_.count(other) || is_told_elsewhere(other)) continue;
        shown_link_[i] = true;
        node(other, depth + 1, &below);
      }
  }

  bool goes_down(Node from, Node to, const Link& link) const {
    if (to.kind == NodeKind::Socket) return false;
    if (link.kind == LinkKind::Disk) return true;
    if (link.kind != LinkKind::Bus && link.kind != LinkKind::Pcie) return false;
    if (from.kind == NodeKind::Gpu || from.kind == NodeKind::Nic) return false;
    if (to.kind != NodeKind::Hub) return true;
    const HubKind kind = machine_.hubs[to.index].kind;
    return kind == HubKind::HostBridge || kind == HubKind::PcieSwitch || kind == HubKind::NvSwitch;
  }

  void other_links() {
    using Key = std::tuple<LinkKind, double, double, std::uint32_t, Provenance>;
    std::map<Key, std::vector<const Link*>> groups;
    for (std::size_t i = 0; i < machine_.links.size(); ++i) {
      const Link& link = machine_.links[i];
      if (shown_link_[i]) continue;
      groups[{link.kind, -link.bytes_per_second[0], -link.bytes_per_second[1], link.width,
              link.provenance}]
          .push_back(&link);
    }
    if (!groups.empty()) text_ += "links:\n";
    for (const auto& [key, links] : groups) {
      text_ += "  " + describe(*links.front()) + ": ";
      const std::string clique = as_clique(links);
      if (!clique.empty()) {
        text_ += clique + "\n";
        continue;
      }
      std::string line;
      for (const Link* link : links) {
        if (line.size() > kLineWidth - 20) {
          text_ += "\n    " + line;
          line.clear();
        }
        line += to_string(link->a) + "-" + to_string(link->b) + "  ";
      }
      line.resize(line.size() - 2);
      text_ += (links.size() * 14 > kLineWidth ? "\n    " : "") + line + "\n";
    }
  }

  /// `between every two of gpu0-7` if the links join every pair of their ends once; else empty.
  static std::string as_clique(const std::vector<const Link*>& links) {
    if (links.size() < 3) return {};
    std::vector<Node> nodes;
    std::vector<std::pair<Node, Node>> pairs;
    for (const Link* link : links) {
      nodes.push_back(link->a);
      nodes.push_back(link->b);
      pairs.emplace_back(std::min(link->a, link->b), std::max(link->a, link->b));
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    if (pairs.size() != links.size() || nodes.front().kind != nodes.back().kind ||
        nodes.size() * (nodes.size() - 1) / 2 != links.size())
      return {};
    std::vector<std::uint32_t> indices;
    for (const Node n : nodes) indices.push_back(n.index);
    std::string name = to_string(nodes.front());
    name.erase(name.find_first_of("0123456789"));
    return "between every two of " + name + format_cpu_list(indices);
  }

  const Machine& machine_;
  std::map<Node, std::vector<std::uint32_t>> at_;
  std::map<Node, bool> shown_;
  std::vector<bool> shown_link_;
  std::string text_;
};

}  // namespace

std::string print_tree(const Machine& machine) {
  return TreePrinter(machine).print();
}

}  // namespace weft
