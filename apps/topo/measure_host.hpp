#pragma once

#include <functional>
#include <string>

#include "apps/topo/topo_command.hpp"
#include "topology/measurements.hpp"

namespace weft {

/// Measures the links of the live machine: memory buses and socket links with pinned threads that
/// read and write memory of the right NUMA node, the others by `hooks.measure_link`. Takes some
/// seconds; `progress` gets one line for each link, also for those that cannot be measured.
Measurements measure_links(const Machine& machine, const TopoHooks& hooks,
                           const std::function<void(const std::string&)>& progress);

}  // namespace weft
