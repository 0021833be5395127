#pragma once

namespace weft::workloads {

/// Gives the workloads' kernels their variants for CUDA devices; does nothing in a weft without the
/// CUDA engine. Before the first op; further calls do nothing. Any thread.
void add_cuda_variants();

/// A part of it: the kernels of `tile_kernels.hpp`. Only in a weft with the CUDA engine.
void add_tile_variants();
/// The same for the kernels of `stencil_kernels.hpp`.
void add_stencil_variants();

}  // namespace weft::workloads
