#include "topology/picture.hpp"

#include <algorithm>
#include <set>

#include "topology/picture_host.hpp"

namespace weft {
namespace {

constexpr double kMargin = 24, kTitle = 64;
constexpr std::size_t kMostHosts = 4;

/// Groups of nodes that links other than network ones join: the hosts.
std::vector<std::set<Node>> find_hosts(const Machine& machine) {
  std::map<Node, std::vector<Node>> next;
  std::vector<Node> all;
  const auto add = [&](NodeKind kind, std::size_t count) {
    for (std::uint32_t i = 0; i < count; ++i) all.emplace_back(kind, i);
  };
  add(NodeKind::Socket, machine.sockets.size());
  add(NodeKind::Memory, machine.memories.size());
  add(NodeKind::Gpu, machine.gpus.size());
  add(NodeKind::Hub, machine.hubs.size());
  add(NodeKind::Nic, machine.nics.size());
  add(NodeKind::Disk, machine.disks.size());
  for (const Link& link : machine.links) {
    if (link.kind == LinkKind::Network) continue;
    next[link.a].push_back(link.b);
    next[link.b].push_back(link.a);
  }
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i)
    if (const MemoryId memory = machine.gpus[i].memory; memory.is_valid()) {
      next[GpuId{i}].push_back(memory);
      next[memory].push_back(GpuId{i});
    }
  std::set<Node> seen;
  std::vector<std::set<Node>> hosts;
  for (const Node start : all) {
    if (!seen.insert(start).second) continue;
    std::set<Node> host = {start};
    std::vector<Node> open = {start};
    while (!open.empty()) {
      const Node n = open.back();
      open.pop_back();
      for (const Node other : next[n])
        if (seen.insert(other).second) {
          host.insert(other);
          open.push_back(other);
        }
    }
    const bool is_bare = host.size() == 1 && start.kind == NodeKind::Hub;
    if (!is_bare) hosts.push_back(std::move(host));
  }
  return hosts;
}

void move(Picture::Host& host, double dx, double dy) {
  const auto shift = [&](Picture::Box& box) {
    box.x += dx;
    box.y += dy;
  };
  shift(host.frame);
  shift(host.shared_band);
  for (auto& place : host.places) shift(place.box);
  for (auto& hub : host.hubs) shift(hub.box);
  for (auto& [index, box] : host.gpus) shift(box);
  for (auto& column : host.columns) shift(column.box);
  for (auto& bar : host.bars) shift(bar.box);
  for (auto& bar : host.socket_bars) shift(bar.box);
  host.arcs_top += dy;
}

}  // namespace

Picture lay_out(const Machine& machine) {
  Picture picture;
  const std::vector<std::set<Node>> hosts = find_hosts(machine);
  std::size_t shown = hosts.size() > kMostHosts ? kMostHosts - 1 : hosts.size();
  picture.hidden_hosts = hosts.size() - shown;
  const std::size_t columns = shown > 2 ? 2 : 1;
  const bool is_framed = hosts.size() > 1;
  const double padding = is_framed ? 16 : 0;
  double y = kMargin + kTitle, row_height = 0, x = kMargin;
  for (std::size_t i = 0; i < shown; ++i) {
    Picture::Host host = lay_out_host(machine, hosts[i]);
    if (i % columns == 0 && i > 0) {
      y += row_height + 28;
      x = kMargin;
      row_height = 0;
    }
    move(host, x + padding, y + padding);
    host.frame = {x, y, host.frame.width + 2 * padding, host.frame.height + 2 * padding};
    x = host.frame.right() + 28;
    row_height = std::max(row_height, host.frame.height);
    picture.width = std::max(picture.width, host.frame.right() + kMargin);
    picture.hosts.push_back(std::move(host));
  }
  y += row_height;
  const bool has_network =
      std::any_of(machine.links.begin(), machine.links.end(),
                  [](const Link& link) { return link.kind == LinkKind::Network; });
  if (is_framed && has_network) {
    picture.network_y = y + 34;
    y = picture.network_y + Picture::kBarHeight;
  }
  picture.width = std::max(picture.width, 640.0);
  picture.height = y + 56;
  return picture;
}

}  // namespace weft
