#pragma once

#include <cstdint>

#include "actors/runtime.hpp"

namespace weft::calibrate {

/// How much to measure.
struct Effort {
  std::uint32_t repeats = 7;    ///< of each size, after one that warms up
  double most_seconds = 0.3;    ///< of one op: larger sizes are left out
  std::int64_t samples = 8192;  ///< of the perceptron's training
};

/// Each runs a kernel alone on the device, over sizes from small ones to the first that takes
/// longer than `effort` allows, or that the device has no memory for; `runtime`'s tracer, which
/// records costs, has them afterwards. What was recorded before is forgotten.
void run_products(const Runtime& runtime, const Device& device, const Effort& effort, bool fp64);
/// Kernels that move memory: `fill`, and the perceptron's `mlp_update`, v = m·v + g, w -= r·v.
void run_streams(const Runtime& runtime, const Device& device, const Effort& effort);

}  // namespace weft::calibrate
