#pragma once

#include <cstdint>

#include "framework/kernel.hpp"

namespace weft {

/// Kernels that come with weft; all have variants for every kind of device.
namespace kernels {

/// `c = a · b`, row-major: a of [m, k], b of [k, n], c of [m, n].
const Kernel<In<float>, In<float>, Out<float>>& matmul();
const Kernel<In<double>, In<double>, Out<double>>& matmul_f64();

/// Every element becomes `value`.
const Kernel<float, Out<float>>& fill();

/// Uniform in [low, high): element i depends on (seed, i) alone, so the values are the same on
/// every device. SplitMix64, upper 24 bits (Steele, Lea, Flood 2014).
const Kernel<std::uint64_t, float, float, Out<float>>& uniform();

}  // namespace kernels
}  // namespace weft
