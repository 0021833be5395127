#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// What kind of way leads from one memory to another, best first.
enum class RouteClass : std::uint8_t {
  SameMemory,      ///< nothing to cross
  Nvlink,          ///< NVLink, xGMI or C2C all the way
  SameSwitch,      ///< peer to peer under one PCIe switch
  SameHostBridge,  ///< under one host bridge
  SameSocket,      ///< through the memory of one socket
  AcrossSockets,   ///< over a socket interconnect
  Network,         ///< to another host
  None,            ///< not reachable
};

/// One step of a route.
struct Hop {
  LinkId link;
  bool forward = true;  ///< true: from the link's `a` to its `b`
  friend bool operator==(const Hop&, const Hop&) = default;
};

/// Links in order between two memories or devices.
struct Route {
  RouteClass route_class = RouteClass::None;
  std::vector<Hop> hops;
  double bytes_per_second = 0;          ///< rate of the slowest hop; infinity for no hop
  std::chrono::nanoseconds latency{0};  ///< sum over the hops
  friend bool operator==(const Route&, const Route&) = default;
};

/// The best route from `from` to `to`: highest bottleneck rate, then fewest hops, then lowest ids.
/// A route never passes through a GPU, NIC or disk on its way, but for NICs between hosts.
/// Route class `None` if there is none.
///
/// A GPU and the memory it names (`Gpu::memory`) are one place: no link joins them, a route to one
/// is a route to the other, and a route between them has no hop. The same holds for a disk and its
/// memory. A GPU that works in a host memory (an APU) stands at that memory, which may be passed.
/// Network links are used only where no route stays inside the host. A direction whose rate is 0 is
/// out of order and never used. Where every link is as fast one way as the other, the route back is
/// the route there reversed.
///
/// Builds the graph at every call: for more than a few routes use `RouteFinder`. Throws
/// `std::out_of_range` if a node is not of this machine.
Route find_route(const Machine& machine, Node from, Node to);

/// The links of a `Route` as nodes: where it starts, every node on its way, where it ends. Empty
/// for a route without hops.
std::vector<Node> nodes_of(const Machine& machine, const Route& route);

/// `nvlink`, `same switch` …
const char* to_string(RouteClass route_class);

}  // namespace weft
