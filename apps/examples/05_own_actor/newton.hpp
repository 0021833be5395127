#pragma once

#include <cstddef>

struct CUstream_st;  // what a cudaStream_t points to

/// The kernel's step for `count` elements in the GPU's memory: enqueues and returns. Throws if
/// refused.
void launch_newton(CUstream_st* stream, const float* a, float* x, float* moved, std::size_t count);
