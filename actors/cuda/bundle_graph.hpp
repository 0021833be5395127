#pragma once

#include "framework/bundle.hpp"

namespace weft {
class Cuda;
}

namespace weft::cuda {

/// Runs a bundle on the lane as one CUDA graph. Each lane has a graph of its own: the first time
/// on a lane the ops are launched one by one, which lets them make what they keep there, the second
/// time they are captured. Where they cannot be captured they go on being launched one by one.
/// Throws what a kernel's variant throws.
void run_bundle(Cuda& cuda, Op& op);

}  // namespace weft::cuda
