#pragma once

#include <cstddef>

struct CUstream_st;  // what a cudaStream_t points to

/// y += a * x for `count` elements in the GPU's memory: enqueues and returns. Throws if refused.
void launch_axpy(CUstream_st* stream, float a, const float* x, float* y, std::size_t count);
