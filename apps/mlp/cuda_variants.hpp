#pragma once

namespace weft::mlp {

/// Gives the demo's kernels their variants for CUDA devices; does nothing in a weft without the
/// CUDA engine. Before the first op; further calls do nothing. Any thread.
void add_cuda_variants();

}  // namespace weft::mlp
