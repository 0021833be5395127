#include "topology/picture_host.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "topology/picture_links.hpp"

namespace weft {
namespace {

constexpr double kGap = 10;
constexpr double kGpuWidth = 104, kGpuHeight = 62;
constexpr double kChipWidth = 96, kChipHeight = 22;
constexpr double kHubWidth = 92, kHubHeight = 22, kHubStep = 62;
constexpr double kPlaceHeight = 86, kPlaceGap = 92, kPlaceWidth = 250, kSmallPlaceWidth = 170;
constexpr std::size_t kChipsInColumn = 3, kPlacesInRow = 8;

class HostLayout {
 public:
  HostLayout(const Machine& machine, const std::set<Node>& nodes) : m_(machine), nodes_(nodes) {}

  Picture::Host run() {
    find_places();
    find_parents();
    place_widths();
    positions();
    bottom_ = lay_out_fabric(m_, nodes_, host_, bottom_);
    frame();
    return std::move(host_);
  }

 private:
  [[nodiscard]] bool is_place(Node n) const {
    return n.kind == NodeKind::Socket ||
           (n.kind == NodeKind::Hub && m_.hubs[n.index].kind == HubKind::Package);
  }
  [[nodiscard]] bool is_tree_hub(Node n) const {
    return n.kind == NodeKind::Hub && (m_.hubs[n.index].kind == HubKind::HostBridge ||
                                       m_.hubs[n.index].kind == HubKind::PcieSwitch);
  }

  void find_places() {
    for (const Node n : nodes_)
      if (is_place(n)) host_.places.push_back({n, {}, {}});
    std::map<Node, std::set<Node>> near;
    for (const Link& link : m_.links)
      for (const auto& [memory, place] : {std::pair(link.a, link.b), std::pair(link.b, link.a)})
        if (memory.kind == NodeKind::Memory && is_place(place) && nodes_.count(place))
          near[memory].insert(place);
    for (const auto& [memory, places] : near) {
      const MemoryId id{memory.index};
      if (m_.memories[id.value].kind == MemoryKind::Gpu) continue;
      if (places.size() > 1)
        host_.shared_memories.push_back(id);
      else
        for (Picture::Place& place : host_.places)
          if (place.node == *places.begin()) place.memories.push_back(id);
    }
  }

  /// Breadth-first from the places over PCIe and the like; what only a fabric joins comes last.
  void find_parents() {
    std::vector<Node> open;
    for (const Picture::Place& place : host_.places) open.push_back(place.node);
    for (const bool over_fabric : {false, true}) {
      for (std::size_t i = 0; i < open.size(); ++i)
        for (const Link& link : m_.links) {
          if (link.a != open[i] && link.b != open[i]) continue;
          const Node other = link.a == open[i] ? link.b : link.a;
          const bool is_tree_link = link.kind == LinkKind::Pcie || link.kind == LinkKind::Bus ||
                                    link.kind == LinkKind::Disk;
          const bool is_leaf = other.kind == NodeKind::Gpu || other.kind == NodeKind::Nic ||
                               other.kind == NodeKind::Disk;
          if (!is_leaf && !is_tree_hub(other)) continue;
          if (is_place(other) || host_.parent.count(other)) continue;
          if (!is_tree_link && !(over_fabric && is_fabric(link.kind) && is_place(open[i])))
            continue;
          host_.parent[other] = open[i];
          host_.uplink[other] = &link;
          children_[open[i]].push_back(other);
          if (is_tree_hub(other)) open.push_back(other);
        }
    }
    // What nothing joins still has to be seen.
    if (host_.places.empty())
      for (const Node n : nodes_)
        if (n.kind == NodeKind::Gpu && !host_.parent.count(n)) loose_.push_back(n);
  }

  [[nodiscard]] std::vector<Node> kids(Node n, NodeKind kind) const {
    std::vector<Node> result;
    const auto found = children_.find(n);
    if (found != children_.end())
      for (const Node child : found->second)
        if (child.kind == kind) result.push_back(child);
    std::sort(result.begin(), result.end());
    return result;
  }
  [[nodiscard]] std::vector<Node> small_kids(Node n) const {
    std::vector<Node> result = kids(n, NodeKind::Nic);
    const std::vector<Node> disks = kids(n, NodeKind::Disk);
    result.insert(result.end(), disks.begin(), disks.end());
    return result;
  }

  double width_of(Node n) {
    double width = 0;
    for (const Node hub : kids(n, NodeKind::Hub)) width += width_of(hub) + kGap;
    width += static_cast<double>(kids(n, NodeKind::Gpu).size()) * (kGpuWidth + kGap);
    if (!small_kids(n).empty()) width += kChipWidth + kGap;
    width = std::max(width - kGap, kHubWidth);
    return widths_[n] = width;
  }
  int depth_of(Node n) const {
    int depth = 0;
    for (const Node hub : kids(n, NodeKind::Hub)) depth = std::max(depth, 1 + depth_of(hub));
    return depth;
  }

  void place_widths() {
    for (Picture::Place& place : host_.places) {
      // Two chips in a row and two rows at most; more memories make the box wider.
      const double chips = std::ceil(static_cast<double>(place.memories.size()) / 2) * 112 + 16;
      const double least =
          is_large() && !children_.count(place.node) ? kSmallPlaceWidth : kPlaceWidth;
      place.box.width = std::max({width_of(place.node), least, chips});
      place.box.height = kPlaceHeight + (place.memories.size() > 1 ? kChipHeight + 4 : 0);
      depth_ = std::max(depth_, depth_of(place.node));
    }
  }

  void positions() {
    double y = 0;
    y = socket_links(y);
    if (!host_.shared_memories.empty()) {
      host_.shared_band.y = y;
      host_.shared_band.height = kChipHeight + 8;
      y += kChipHeight + 40;
    }
    // On a large machine the places without devices come first, in a grid, and those with devices
    // in one last row.
    const bool has_devices = !host_.parent.empty();
    std::vector<Picture::Place*> order;
    for (const bool loaded : {false, true})
      for (Picture::Place& place : host_.places)
        if (!is_large() || (children_.count(place.node) > 0) == loaded) {
          if (is_large() || !loaded) order.push_back(&place);
        }
    const double gap = host_.places.size() == 2 ? kPlaceGap : 28;
    double x = 0, row_height = 0, right = 0;
    std::size_t in_row = 0;
    bool was_loaded = false;
    for (Picture::Place* place : order) {
      const bool is_loaded = children_.count(place->node) > 0;
      const bool is_new_row = is_large() && (is_loaded ? !was_loaded : in_row == kPlacesInRow);
      if (is_new_row && in_row > 0) {
        x = 0;
        y += row_height + 16;
        row_height = 0;
        in_row = 0;
      }
      was_loaded = is_loaded;
      place->box.x = x;
      place->box.y = y;
      row_height = std::max(row_height, place->box.height);
      x += place->box.width + gap;
      right = std::max(right, place->box.right());
      ++in_row;
    }
    for (Picture::Place& place : host_.places)
      if (has_devices && !is_large()) place.box.height = row_height;
    y += row_height;
    hub_top_ = y + 34;
    device_top_ = depth_ > 0 ? hub_top_ + depth_ * kHubStep : y + 44;
    for (const Picture::Place& place : host_.places) {
      const double spare = place.box.width - widths_[place.node];
      below(place.node, place.box.x + spare / 2, 0);
    }
    for (std::size_t i = 0; i < loose_.size(); ++i)
      host_.gpus[loose_[i].index] = {static_cast<double>(i) * (kGpuWidth + kGap), device_top_,
                                     kGpuWidth, kGpuHeight};
    bottom_ = has_devices || !loose_.empty() ? device_top_ + kGpuHeight : y;
    for (const Picture::Column& column : host_.columns)
      bottom_ = std::max(bottom_, column.box.bottom());
    host_.shared_band.width = right;
  }

  [[nodiscard]] bool is_large() const { return host_.places.size() > kPlacesInRow; }

  void below(Node parent, double x, int level) {
    for (const Node hub : kids(parent, NodeKind::Hub)) {
      const double width = widths_[hub];
      Picture::Box box{x + (width - kHubWidth) / 2, hub_top_ + level * kHubStep, kHubWidth,
                       kHubHeight};
      host_.hubs.push_back({HubId{hub.index}, box});
      below(hub, x, level + 1);
      x += width + kGap;
    }
    for (const Node gpu : kids(parent, NodeKind::Gpu)) {
      host_.gpus[gpu.index] = {x, device_top_, kGpuWidth, kGpuHeight};
      x += kGpuWidth + kGap;
    }
    const std::vector<Node> small = small_kids(parent);
    if (small.empty()) return;
    Picture::Column column;
    column.parent = parent;
    column.shown = small;
    if (small.size() > kChipsInColumn) column.shown.resize(kChipsInColumn - 1);
    column.hidden = small.size() - column.shown.size();
    const auto rows = static_cast<double>(column.shown.size() + (column.hidden > 0 ? 1 : 0));
    column.box = {x, device_top_, kChipWidth, rows * (kChipHeight + 4) - 4};
    host_.columns.push_back(std::move(column));
  }

  double socket_links(double y) {
    std::vector<const Link*> links;
    for (const Link& link : m_.links)
      if (link.kind == LinkKind::Socket && nodes_.count(link.a)) links.push_back(&link);
    if (host_.places.size() < 3 || links.empty()) return y;
    // Latency differs with distance; the rate is what the picture shows.
    for (const auto& clique : take_cliques(links, NodeKind::Socket, 3)) {
      Picture::Bar bar;
      bar.link = clique.front();
      bar.label = "socket interconnect, every two: " + rate_text(*bar.link);
      std::set<Node> ends;
      for (const Link* link : clique) ends.insert(link->a), ends.insert(link->b);
      bar.ends.assign(ends.begin(), ends.end());
      bar.box.y = y;
      bar.box.height = Picture::kBarHeight;
      host_.socket_bars.push_back(std::move(bar));
      y += Picture::kBarStep;
    }
    for (const Link* link : links) host_.arcs.push_back(link);
    return y + (links.empty() ? 6 : 46);
  }

  void frame() {
    double right = 0;
    for (const Picture::Place& place : host_.places) right = std::max(right, place.box.right());
    for (const auto& [index, box] : host_.gpus) right = std::max(right, box.right());
    for (const Picture::Bar& bar : host_.bars) right = std::max(right, bar.box.right());
    for (Picture::Bar& bar : host_.socket_bars) {
      bar.box.x = 0;
      bar.box.width = right;
    }
    host_.frame = {0, 0, right, bottom_};
  }

  const Machine& m_;
  const std::set<Node>& nodes_;
  Picture::Host host_;
  std::map<Node, std::vector<Node>> children_;
  std::vector<Node> loose_;
  std::map<Node, double> widths_;
  int depth_ = 0;
  double hub_top_ = 0, device_top_ = 0, bottom_ = 0;
};

}  // namespace

Picture::Host lay_out_host(const Machine& machine, const std::set<Node>& nodes) {
  return HostLayout(machine, nodes).run();
}

}  // namespace weft
