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
};

/// Links in order between two memories or devices.
struct Route {
  RouteClass route_class = RouteClass::None;
  std::vector<Hop> hops;
  double bytes_per_second = 0;          ///< rate of the slowest hop; infinity for no hop
  std::chrono::nanoseconds latency{0};  ///< sum over the hops
};

/// The best route from `from` to `to`: highest bottleneck rate, then fewest hops, then lowest ids.
/// A route never passes through a GPU, NIC or disk on its way, but for NICs between hosts.
/// Route class `None` if there is none.
Route find_route(const Machine& machine, Node from, Node to);

/// `nvlink`, `same switch` …
const char* to_string(RouteClass route_class);

}  // namespace weft
