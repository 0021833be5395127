#pragma once

#include <cstdint>

#include "framework/kernel.hpp"

namespace weft::workloads {

inline constexpr std::uint64_t kStencilSeed = 4;
/// What an element keeps of itself in a step, and takes of each neighbour.
inline constexpr float kStencilCentre = 0.5f, kStencilSide = 0.125f;

/// The kernels of the stencil, each with a variant for sockets and, in a weft with the CUDA engine,
/// one for GPUs. A strip is some rows of a grid, row-major.

/// The strip that begins with row `first_row`: element i of the grid is `random_element(seed, i)`.
const Kernel<std::int64_t, Out<float>>& fill_strip();

/// The first and the last row of a strip, for its neighbours. Order: strip, first, last.
const Kernel<In<float>, Out<float>, Out<float>>& edges();

/// A strip one step later; beside the grid all is zero. Order: strip, the row above, the row below,
/// the new strip.
const Kernel<In<float>, In<float>, In<float>, Out<float>>& relax();

}  // namespace weft::workloads
