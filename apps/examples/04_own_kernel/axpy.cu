#include "axpy.hpp"

#include <cuda_runtime.h>

#include <stdexcept>

__global__ void axpy(float a, const float* x, float* y, std::size_t count) {
  const std::size_t stride = std::size_t{blockDim.x} * gridDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    y[i] += a * x[i];
}

void launch_axpy(CUstream_st* stream, float a, const float* x, float* y, std::size_t count) {
  if (count == 0) return;
  axpy<<<256, 256, 0, stream>>>(a, x, y, count);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
