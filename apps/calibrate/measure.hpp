#pragma once

#include <functional>
#include <string>

#include "actors/runtime.hpp"
#include "actors/simulated/calibration.hpp"
#include "apps/calibrate/sizes.hpp"
#include "apps/topo/topo_command.hpp"

namespace weft::calibrate {

/// What it says while it goes on.
struct Report {
  std::function<void(const std::string&)> step;  ///< what is measured next
  std::function<void(const std::string&)> line;  ///< what came out
};

/// Measures the devices, links and memories of the live machine, one device of each model. Some
/// minutes; blocks. `options` says which GPUs and nothing else; `hooks` as for `weft topo`. Throws
/// `DeviceError`, `OpError`, `CalibrationError`.
Calibration measure(const RuntimeOptions& options, const TopoHooks& hooks, const Effort& effort,
                    const Report& report);

}  // namespace weft::calibrate
