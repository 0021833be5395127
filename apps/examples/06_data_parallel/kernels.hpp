#pragma once

#include <cstddef>

struct CUstream_st;  // what a cudaStream_t points to

/// The example's kernels for matrices in the GPU's memory: x [samples, features]. Each enqueues and
/// returns; throws if refused.
void launch_gradient(CUstream_st* stream, const float* x, const float* y, const float* w,
                     float* gradient, float* loss, std::size_t samples, std::size_t features);
void launch_descend(CUstream_st* stream, float rate, const float* gradient, float* w,
                    std::size_t features);
