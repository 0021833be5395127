#pragma once

#include <cstddef>
#include <vector>

#include "actors/runtime.hpp"

namespace weft::calibrate {

/// A perceptron as `weft mlp` trains it, on pictures of 784 random pixels.
struct Perceptron {
  std::size_t hidden = 256, batch = 256, samples = 8192;
};

/// Trains it for an epoch that warms up and for one whose seconds, by the devices' clock, it
/// returns. A tracer has that one alone.
double train(const Runtime& runtime, const std::vector<Device>& devices, const Perceptron& what);

}  // namespace weft::calibrate
