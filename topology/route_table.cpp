#include "topology/route_table.hpp"

#include <algorithm>

#include "topology/route_finder.hpp"

namespace weft {

RouteTable::RouteTable(const Machine& machine, std::vector<Node> ends) : ends_(std::move(ends)) {
  const RouteFinder finder(machine);
  const std::size_t count = ends_.size();
  entries_.resize(count * count);
  std::vector<std::uint32_t> place;
  for (const Node end : ends_) place.push_back(finder.place(end));
  std::vector<Node> targets;
  std::vector<std::size_t> index;
  for (std::size_t from = 0; from < count; ++from) {
    targets.clear();
    index.clear();
    for (std::size_t to = 0; to < count; ++to)
      if (!finder.is_symmetric() || place[from] <= place[to]) {
        targets.push_back(ends_[to]);
        index.push_back(to);
      }
    const std::vector<Route> routes = finder.find_from(ends_[from], targets);
    for (std::size_t i = 0; i < routes.size(); ++i) store(from, index[i], routes[i]);
  }
  if (!finder.is_symmetric()) return;
  for (std::size_t from = 0; from < count; ++from)
    for (std::size_t to = 0; to < count; ++to)
      if (place[from] > place[to]) {
        Entry& entry = entries_[from * count + to];
        entry = at(to, from);
        entry.reversed = true;
      }
}

void RouteTable::store(std::size_t from, std::size_t to, const Route& route) {
  Entry& entry = entries_[from * ends_.size() + to];
  entry.bytes_per_second = route.bytes_per_second;
  entry.latency = route.latency;
  entry.first_hop = hops_.size();
  entry.hop_count = static_cast<std::uint32_t>(route.hops.size());
  entry.route_class = route.route_class;
  for (const Hop& hop : route.hops) hops_.push_back(2 * hop.link.value + (hop.forward ? 0 : 1));
}

Route RouteTable::route(std::size_t from, std::size_t to) const {
  const Entry& entry = at(from, to);
  Route route;
  route.route_class = entry.route_class;
  route.bytes_per_second = entry.bytes_per_second;
  route.latency = entry.latency;
  for (std::uint32_t i = 0; i < entry.hop_count; ++i) {
    const std::uint32_t hop = hops_[entry.first_hop + i];
    route.hops.push_back({LinkId{hop / 2}, hop % 2 == 0});
  }
  return entry.reversed ? reversed(std::move(route)) : route;
}

std::vector<std::pair<std::size_t, std::size_t>> RouteTable::routes_over(Hop hop) const {
  const std::uint32_t there = 2 * hop.link.value + (hop.forward ? 0 : 1);
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t from = 0; from < ends_.size(); ++from)
    for (std::size_t to = 0; to < ends_.size(); ++to) {
      const Entry& entry = at(from, to);
      const auto first = hops_.begin() + static_cast<std::ptrdiff_t>(entry.first_hop);
      const std::uint32_t wanted = entry.reversed ? there ^ 1u : there;
      if (std::find(first, first + entry.hop_count, wanted) != first + entry.hop_count)
        pairs.emplace_back(from, to);
    }
  return pairs;
}

std::vector<Hop> shared_hops(const Route& a, const Route& b) {
  std::vector<Hop> shared;
  for (const Hop& hop : a.hops)
    if (std::find(b.hops.begin(), b.hops.end(), hop) != b.hops.end()) shared.push_back(hop);
  return shared;
}

}  // namespace weft
