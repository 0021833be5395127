#pragma once

namespace weft::mlp {

/// The parts of `add_cuda_variants`: those of `layer_kernels.hpp` and of `data_kernels.hpp`. Only
/// in a weft with the CUDA engine.
void add_layer_variants();
void add_data_variants();

}  // namespace weft::mlp
