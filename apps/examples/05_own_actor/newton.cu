#include "newton.hpp"

#include <cuda_runtime.h>

#include <stdexcept>

// One block: the numbers are few.
__global__ void newton(const float* a, float* x, float* moved, std::size_t count) {
  __shared__ int most;  // of numbers that are not negative the bits compare as the numbers do
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) {
    const float next = 0.5f * (x[i] + a[i] / x[i]);
    atomicMax(&most, __float_as_int(fabsf(next - x[i])));
    x[i] = next;
  }
  __syncthreads();
  if (threadIdx.x == 0) moved[0] = __int_as_float(most);
}

void launch_newton(CUstream_st* stream, const float* a, float* x, float* moved, std::size_t count) {
  newton<<<1, 256, 0, stream>>>(a, x, moved, count);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
