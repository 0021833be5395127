#pragma once

#include <cstdint>
#include <vector>

#include "topology/machine.hpp"
#include "topology/route.hpp"

namespace weft {

/// The link graph of a machine, made once, that answers for any number of routes.
///
/// Keeps a pointer to the machine: it must outlive the finder. All queries are const and may run in
/// several threads.
class RouteFinder {
 public:
  explicit RouteFinder(const Machine& machine);

  /// See `find_route`.
  [[nodiscard]] Route find(Node from, Node to) const;

  /// Routes from `from` to each of `to`, in that order, from one search: costs little more than one
  /// `find`. Of several equally good routes this may choose another than `find(to, from)` reversed.
  [[nodiscard]] std::vector<Route> find_from(Node from, const std::vector<Node>& to) const;

  /// True where every link is as fast one way as the other: then `find(a, b)` is `find(b, a)`
  /// reversed.
  [[nodiscard]] bool is_symmetric() const { return symmetric_; }

  /// The number that stands for the place of a node: equal for a GPU and its memory.
  [[nodiscard]] std::uint32_t place(Node node) const { return same_as_[vertex(node)]; }

  [[nodiscard]] const Machine& machine() const { return *machine_; }

 private:
  struct Edge {
    std::uint32_t to = 0;
    std::uint32_t link = 0;
    std::uint32_t rank = 0;  ///< index into `rates_`: 0 is the fastest
    bool forward = true;
    bool network = false;
  };
  enum class Transit : std::uint8_t { Free, Never, Nic };
  struct Search;

  [[nodiscard]] std::uint32_t vertex(Node node) const;
  void widest(Search& search, std::uint32_t from, bool network) const;
  void shortest(Search& search, std::uint32_t from, std::uint32_t rank, bool network) const;
  [[nodiscard]] Route trace_back(const Search& search, std::uint32_t from, std::uint32_t to) const;
  [[nodiscard]] RouteClass classify(const std::vector<Hop>& hops) const;
  [[nodiscard]] bool may_leave(std::uint32_t vertex, bool came_by_network, const Edge& edge) const;

  const Machine* machine_;
  std::uint32_t first_[6] = {};  ///< vertex of the first node of each kind
  std::uint32_t count_[6] = {};
  std::vector<std::uint32_t>
      same_as_;  ///< vertex that stands for a node: a GPU's memory is its GPU
  std::vector<Transit> transit_;
  std::vector<std::uint32_t> begin_;  ///< edges of vertex v: `edges_[begin_[v] .. begin_[v + 1])`
  std::vector<Edge> edges_;
  std::vector<double> rates_;  ///< distinct rates, fastest first
  bool symmetric_ = true;
};

/// The same way back: hops in the opposite order and direction. Class, rate and latency are kept.
Route reversed(Route route);

}  // namespace weft
