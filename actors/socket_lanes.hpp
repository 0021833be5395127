#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// What of a socket gets a lane, a thread that runs ops.
enum class SocketLanes : std::uint8_t {
  Cores,      ///< each core, on its first hardware thread
  Threads,    ///< each hardware thread: for ops that wait for memory more than they compute
  FastCores,  ///< of a hybrid processor only the fastest kind of core; else as `Cores`
};

/// `cores`, `threads` or `fast-cores`. Throws `DeviceError`.
SocketLanes parse_socket_lanes(const std::string& text);

/// The processors that lanes run on, one a lane: faster cores first, then as the socket lists them.
std::vector<std::uint32_t> lane_cpus(const Socket& socket, SocketLanes lanes);

/// How many cores they are on: what computes at a time.
std::uint32_t lane_cores(const Socket& socket, SocketLanes lanes);

}  // namespace weft
