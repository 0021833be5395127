#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "topology/machine.hpp"
#include "topology/route.hpp"

namespace weft {

/// The best routes between all pairs of some nodes, worked out once.
///
/// The same routes as `find_route` gives, in a form that a cluster fits in: about 50 bytes a pair.
/// Immutable; queries may run in several threads. Pairs are named by their index into `ends()`.
class RouteTable {
 public:
  /// Throws `std::out_of_range` if a node is not of this machine.
  RouteTable(const Machine& machine, std::vector<Node> ends);

  [[nodiscard]] const std::vector<Node>& ends() const { return ends_; }
  [[nodiscard]] RouteClass route_class(std::size_t from, std::size_t to) const {
    return at(from, to).route_class;
  }
  /// Rate of the slowest hop; infinity for no hop, 0 for no route.
  [[nodiscard]] double bytes_per_second(std::size_t from, std::size_t to) const {
    return at(from, to).bytes_per_second;
  }
  [[nodiscard]] std::size_t hop_count(std::size_t from, std::size_t to) const {
    return at(from, to).hop_count;
  }
  [[nodiscard]] Route route(std::size_t from, std::size_t to) const;

  /// The pairs whose route crosses a hop in that direction: those share its rate when they copy at
  /// once. Sorted.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> routes_over(Hop hop) const;

 private:
  struct Entry {
    double bytes_per_second = 0;
    std::chrono::nanoseconds latency{0};
    std::uint64_t first_hop = 0;  ///< into `hops_`
    std::uint32_t hop_count = 0;
    RouteClass route_class = RouteClass::None;
    bool reversed = false;  ///< hops are those of the way back
  };

  [[nodiscard]] const Entry& at(std::size_t from, std::size_t to) const {
    return entries_.at(from * ends_.size() + to);
  }
  void store(std::size_t from, std::size_t to, const Route& route);

  std::vector<Node> ends_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> hops_;  ///< twice the link, plus 1 if it is crossed from `b` to `a`
};

/// Hops of `a` that `b` crosses in the same direction: where two copies at once slow each other
/// down.
std::vector<Hop> shared_hops(const Route& a, const Route& b);

}  // namespace weft
