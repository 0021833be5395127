#pragma once

namespace weft::cuda {

/// Gives weft's own kernels their variants for CUDA devices: those of `framework/builtin.hpp`, the
/// copy within a memory, the summing of `reduce` contributions and the local steps of collectives.
/// Once, before the first op of a runtime with CUDA devices; further calls do nothing. Any thread.
void add_cuda_variants();

}  // namespace weft::cuda
