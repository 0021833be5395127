#pragma once

#include "apps/topo/topo_command.hpp"

namespace weft::apps {

/// What this build of weft can do for `weft topo` and `weft doctor` beyond hwloc: GPUs as CUDA and
/// NVML see them, figures of their links. Empty hooks in a build without CUDA.
TopoHooks live_topo_hooks();

}  // namespace weft::apps
