#include "topology/route_finder.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

namespace weft {
namespace {

constexpr std::uint32_t kUnreached = 0xffffffffu;

}  // namespace

/// Scratch of one source's search.
struct RouteFinder::Search {
  std::vector<std::uint32_t> rank;  ///< rank of the bottleneck from the source; 0 = fastest rate
  std::vector<std::uint32_t> from;  ///< vertex a vertex was reached from
  std::vector<std::uint32_t> via;   ///< index into `edges_` it was reached by
  std::vector<std::uint32_t> distance;  ///< hops from the source
  std::vector<std::vector<std::uint32_t>> buckets;
  std::vector<std::uint32_t> queue;
};

RouteFinder::RouteFinder(const Machine& machine) : machine_(&machine) {
  const std::size_t sizes[6] = {machine.sockets.size(), machine.memories.size(),
                                machine.gpus.size(),    machine.hubs.size(),
                                machine.nics.size(),    machine.disks.size()};
  std::uint32_t total = 0;
  for (int kind = 0; kind < 6; ++kind) {
    first_[kind] = total;
    count_[kind] = static_cast<std::uint32_t>(sizes[kind]);
    total += count_[kind];
  }
  transit_.assign(total, Transit::Free);
  same_as_.resize(total);
  for (std::uint32_t v = 0; v < total; ++v) same_as_[v] = v;

  // A GPU's own memory stands behind the GPU; a GPU that shares a host memory stands at that
  // memory.
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i) {
    const Gpu& gpu = machine.gpus[i];
    const std::uint32_t self = vertex(GpuId{i});
    transit_[self] = Transit::Never;
    if (!gpu.memory.is_valid()) continue;
    const std::uint32_t memory = vertex(gpu.memory);
    if (machine.memories[gpu.memory.value].kind == MemoryKind::Gpu) {
      transit_[memory] = Transit::Never;
      if (same_as_[memory] == memory) same_as_[memory] = self;
      // Two partitions of one chip that share a memory are one place as well.
      else
        same_as_[self] = same_as_[memory];
    } else {
      same_as_[self] = memory;
    }
  }
  for (std::uint32_t i = 0; i < machine.nics.size(); ++i) transit_[vertex(NicId{i})] = Transit::Nic;
  for (std::uint32_t i = 0; i < machine.disks.size(); ++i) {
    const std::uint32_t self = vertex(DiskId{i});
    transit_[self] = Transit::Never;
    if (!machine.disks[i].memory.is_valid()) continue;
    const std::uint32_t memory = vertex(machine.disks[i].memory);
    transit_[memory] = Transit::Never;
    same_as_[memory] = self;
  }

  for (const Link& link : machine.links) {
    for (const double rate : link.bytes_per_second)
      if (rate > 0) rates_.push_back(rate);
    if (link.bytes_per_second[0] != link.bytes_per_second[1]) symmetric_ = false;
  }
  std::sort(rates_.begin(), rates_.end(), std::greater<>());
  rates_.erase(std::unique(rates_.begin(), rates_.end()), rates_.end());

  // Counting sort of the edges by where they start; links in id order within a vertex.
  begin_.assign(total + 1, 0);
  const auto each_edge = [&](auto&& use) {
    for (std::uint32_t i = 0; i < machine.links.size(); ++i) {
      const Link& link = machine.links[i];
      const std::uint32_t a = same_as_[vertex(link.a)], b = same_as_[vertex(link.b)];
      if (a == b) continue;
      for (const bool forward : {true, false}) {
        const double rate = link.bytes_per_second[forward ? 0 : 1];
        if (rate > 0) use(forward ? a : b, forward ? b : a, i, forward, rate);
      }
    }
  };
  each_edge([&](auto start, auto, auto, bool, double) { ++begin_[start + 1]; });
  for (std::uint32_t v = 0; v < total; ++v) begin_[v + 1] += begin_[v];
  edges_.resize(begin_[total]);
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  each_edge([&](auto start, auto end, auto link, bool forward, double rate) {
    const auto rank = std::lower_bound(rates_.begin(), rates_.end(), rate, std::greater<>());
    edges_[next[start]++] = {end, link, static_cast<std::uint32_t>(rank - rates_.begin()), forward,
                             machine.links[link].kind == LinkKind::Network};
  });
}

std::uint32_t RouteFinder::vertex(Node node) const {
  const auto kind = static_cast<std::size_t>(node.kind);
  if (node.index >= count_[kind])
    throw std::out_of_range(to_string(node) + ": this machine has " + std::to_string(count_[kind]) +
                            " of that kind; see weft topo");
  return first_[kind] + node.index;
}

bool RouteFinder::may_leave(std::uint32_t vertex, bool came_by_network, const Edge& edge) const {
  switch (transit_[vertex]) {
    case Transit::Free:
      return true;
    case Transit::Never:
      return false;
    case Transit::Nic:
      return came_by_network || edge.network;
  }
  return false;
}

void RouteFinder::widest(Search& s, std::uint32_t from, bool network) const {
  // Dijkstra with one bucket per distinct rate: a path's rank is the largest rank on it.
  s.rank.assign(transit_.size(), kUnreached);
  s.via.assign(transit_.size(), kUnreached);
  s.buckets.resize(rates_.size() + 1);
  for (auto& bucket : s.buckets) bucket.clear();
  s.rank[from] = 0;
  s.buckets[0].push_back(from);
  for (std::uint32_t rank = 0; rank < s.buckets.size(); ++rank) {
    for (std::size_t i = 0; i < s.buckets[rank].size(); ++i) {
      const std::uint32_t v = s.buckets[rank][i];
      if (s.rank[v] != rank) continue;
      const bool by_network = s.via[v] != kUnreached && edges_[s.via[v]].network;
      for (std::uint32_t e = begin_[v]; e < begin_[v + 1]; ++e) {
        const Edge& edge = edges_[e];
        if (edge.network && !network) continue;
        if (v != from && !may_leave(v, by_network, edge)) continue;
        const std::uint32_t reached = std::max(rank, edge.rank);
        if (reached >= s.rank[edge.to]) continue;
        s.rank[edge.to] = reached;
        s.via[edge.to] = e;
        s.buckets[reached].push_back(edge.to);
      }
    }
  }
}

void RouteFinder::shortest(Search& s, std::uint32_t from, std::uint32_t rank, bool network) const {
  s.distance.assign(transit_.size(), kUnreached);
  s.from.resize(transit_.size());
  s.via.assign(transit_.size(), kUnreached);
  s.queue.clear();
  s.distance[from] = 0;
  s.queue.push_back(from);
  for (std::size_t i = 0; i < s.queue.size(); ++i) {
    const std::uint32_t v = s.queue[i];
    const bool by_network = s.via[v] != kUnreached && edges_[s.via[v]].network;
    for (std::uint32_t e = begin_[v]; e < begin_[v + 1]; ++e) {
      const Edge& edge = edges_[e];
      if (edge.rank > rank || s.distance[edge.to] != kUnreached) continue;
      if (edge.network && !network) continue;
      if (v != from && !may_leave(v, by_network, edge)) continue;
      s.distance[edge.to] = s.distance[v] + 1;
      s.from[edge.to] = v;
      s.via[edge.to] = e;
      s.queue.push_back(edge.to);
    }
  }
}

Route RouteFinder::trace_back(const Search& s, std::uint32_t from, std::uint32_t to) const {
  Route route;
  route.hops.resize(s.distance[to]);
  route.bytes_per_second = std::numeric_limits<double>::infinity();
  std::size_t i = route.hops.size();
  for (std::uint32_t v = to; v != from; v = s.from[v]) {
    const Edge& edge = edges_[s.via[v]];
    const Link& link = machine_->links[edge.link];
    route.hops[--i] = {LinkId{edge.link}, edge.forward};
    route.bytes_per_second = std::min(route.bytes_per_second, rates_[edge.rank]);
    route.latency += link.latency;
  }
  route.route_class = classify(route.hops);
  return route;
}

RouteClass RouteFinder::classify(const std::vector<Hop>& hops) const {
  if (hops.empty()) return RouteClass::SameMemory;
  bool socket_link = false, fabric = true, any_fabric = false;
  int host_bridges = 0, sockets = 0, inner_host_nodes = 0;
  for (std::size_t i = 0; i < hops.size(); ++i) {
    const Link& link = machine_->links[hops[i].link.value];
    if (link.kind == LinkKind::Network) return RouteClass::Network;
    socket_link |= link.kind == LinkKind::Socket;
    fabric &= is_fabric(link.kind) || link.kind == LinkKind::Bus;
    any_fabric |= is_fabric(link.kind);
    // The node this hop starts at, and for the last hop the node it ends at.
    const auto look_at = [&](Node node, bool inner) {
      if (node.kind == NodeKind::Socket) ++sockets;
      if (node.kind == NodeKind::Hub) {
        const HubKind kind = machine_->hubs[node.index].kind;
        if (kind == HubKind::HostBridge) ++host_bridges;
        if (kind == HubKind::Package) ++sockets;
      }
      if (inner && (node.kind == NodeKind::Socket || node.kind == NodeKind::Memory))
        ++inner_host_nodes;
    };
    look_at(hops[i].forward ? link.a : link.b, i > 0);
    if (i + 1 == hops.size()) look_at(hops[i].forward ? link.b : link.a, false);
  }
  if (socket_link || sockets > 1) return RouteClass::AcrossSockets;
  const auto touches_host = [&](const Hop& hop) {
    return machine_->links[hop.link.value].kind == LinkKind::Bus;
  };
  if (fabric && any_fabric) {
    // From or to the socket's own memory over its link to the GPU is "all the way"; from GPU to GPU
    // through the socket is not.
    const bool ends_in_host = touches_host(hops.front()) || touches_host(hops.back());
    if (inner_host_nodes == 0 || ends_in_host) return RouteClass::Nvlink;
  }
  if (sockets == 0 && inner_host_nodes == 0 && host_bridges == 0) return RouteClass::SameSwitch;
  if (sockets == 0 && inner_host_nodes == 0 && host_bridges == 1) return RouteClass::SameHostBridge;
  return RouteClass::SameSocket;
}

std::vector<Route> RouteFinder::find_from(Node from, const std::vector<Node>& to) const {
  std::vector<Route> routes(to.size());
  const std::uint32_t source = same_as_[vertex(from)];
  std::vector<std::uint32_t> targets(to.size());
  for (std::size_t i = 0; i < to.size(); ++i) targets[i] = same_as_[vertex(to[i])];

  Search s;
  std::vector<std::size_t> open(to.size());
  for (std::size_t i = 0; i < to.size(); ++i) open[i] = i;
  for (const bool network : {false, true}) {
    if (open.empty()) break;
    widest(s, source, network);
    const std::vector<std::uint32_t> rank = s.rank;
    // A bucket per bottleneck: one breadth-first search over the links at least that fast serves
    // all targets that have it.
    std::vector<std::vector<std::size_t>> by_rank(rates_.size() + 1);
    std::vector<std::size_t> missing;
    for (const std::size_t i : open) {
      if (rank[targets[i]] == kUnreached)
        missing.push_back(i);
      else
        by_rank[rank[targets[i]]].push_back(i);
    }
    for (std::uint32_t r = 0; r < by_rank.size(); ++r) {
      if (by_rank[r].empty()) continue;
      shortest(s, source, r, network);
      for (const std::size_t i : by_rank[r]) routes[i] = trace_back(s, source, targets[i]);
    }
    open = std::move(missing);
  }
  return routes;
}

Route RouteFinder::find(Node from, Node to) const {
  if (!symmetric_ || same_as_[vertex(from)] <= same_as_[vertex(to)])
    return find_from(from, {to}).front();
  return reversed(find_from(to, {from}).front());
}

Route reversed(Route route) {
  std::reverse(route.hops.begin(), route.hops.end());
  for (Hop& hop : route.hops) hop.forward = !hop.forward;
  return route;
}

Route find_route(const Machine& machine, Node from, Node to) {
  return RouteFinder(machine).find(from, to);
}

std::vector<Node> nodes_of(const Machine& machine, const Route& route) {
  std::vector<Node> nodes;
  for (const Hop& hop : route.hops) {
    const Link& link = machine.links.at(hop.link.value);
    if (nodes.empty()) nodes.push_back(hop.forward ? link.a : link.b);
    nodes.push_back(hop.forward ? link.b : link.a);
  }
  return nodes;
}

const char* to_string(RouteClass route_class) {
  switch (route_class) {
    case RouteClass::SameMemory:
      return "same memory";
    case RouteClass::Nvlink:
      return "nvlink";
    case RouteClass::SameSwitch:
      return "same switch";
    case RouteClass::SameHostBridge:
      return "same host bridge";
    case RouteClass::SameSocket:
      return "same socket";
    case RouteClass::AcrossSockets:
      return "across sockets";
    case RouteClass::Network:
      return "network";
    case RouteClass::None:
      return "none";
  }
  return "none";
}

}  // namespace weft
