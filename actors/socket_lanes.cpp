#include "actors/socket_lanes.hpp"

#include <algorithm>

#include "framework/failure.hpp"

namespace weft {
namespace {

std::vector<Core> chosen_cores(const Socket& socket, SocketLanes lanes) {
  std::vector<Core> cores = socket.cores;
  std::stable_sort(cores.begin(), cores.end(),
                   [](const Core& a, const Core& b) { return a.efficiency > b.efficiency; });
  if (lanes == SocketLanes::FastCores && !cores.empty()) {
    const std::int32_t fastest = cores.front().efficiency;
    std::erase_if(cores, [&](const Core& core) { return core.efficiency < fastest; });
  }
  return cores;
}

}  // namespace

SocketLanes parse_socket_lanes(const std::string& text) {
  if (text == "cores") return SocketLanes::Cores;
  if (text == "threads") return SocketLanes::Threads;
  if (text == "fast-cores") return SocketLanes::FastCores;
  throw DeviceError("lanes \"" + text + "\": wanted cores, threads or fast-cores");
}

std::vector<std::uint32_t> lane_cpus(const Socket& socket, SocketLanes lanes) {
  std::vector<std::uint32_t> cpus;
  const std::vector<Core> cores = chosen_cores(socket, lanes);
  for (const Core& core : cores) cpus.push_back(core.pus.front());
  if (lanes == SocketLanes::Threads)  // a core's further threads behind all cores' first ones
    for (const Core& core : cores) cpus.insert(cpus.end(), core.pus.begin() + 1, core.pus.end());
  return cpus;
}

std::uint32_t lane_cores(const Socket& socket, SocketLanes lanes) {
  return static_cast<std::uint32_t>(chosen_cores(socket, lanes).size());
}

}  // namespace weft
