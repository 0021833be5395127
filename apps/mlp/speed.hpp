#pragma once

#include <cstddef>
#include <vector>

#include "framework/device.hpp"
#include "framework/trace.hpp"
#include "topology/machine.hpp"

namespace weft::mlp {

/// True if the two differ in nothing that the machine's topology tells about their speed.
bool are_alike(const Machine& machine, const Device& a, const Device& b);

/// Seconds of forward and backward pass that a step took on each device: the median over the
/// `steps` training steps that `data` holds, 0 for a device without any.
std::vector<double> seconds_per_step(const TraceData& data, const std::vector<Device>& devices,
                                     std::size_t steps);

}  // namespace weft::mlp
