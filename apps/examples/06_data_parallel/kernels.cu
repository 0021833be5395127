#include "kernels.hpp"

#include <cuda_runtime.h>

#include <stdexcept>

namespace {

constexpr int kThreads = 256;

void check_launch() {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

// One block: a thread a sample for the errors of some samples, then a thread a feature for what
// they add to the gradient, always in the order of the samples.
__global__ void gradient_of(const float* x, const float* y, const float* w, float* gradient,
                            float* loss, std::size_t samples, std::size_t features) {
  __shared__ float errors[kThreads];
  const std::size_t t = threadIdx.x;
  const float scale = 1.0f / static_cast<float>(samples);
  float sum = 0;
  for (std::size_t j = t; j < features; j += kThreads) gradient[j] = 0;
  for (std::size_t first = 0; first < samples; first += kThreads) {
    const std::size_t here = samples - first < kThreads ? samples - first : kThreads;
    if (t < here) {
      const float* row = x + (first + t) * features;
      float error = -y[first + t];
      for (std::size_t j = 0; j < features; ++j) error += row[j] * w[j];
      errors[t] = error;
    }
    __syncthreads();
    for (std::size_t j = t; j < features; j += kThreads)
      for (std::size_t i = 0; i < here; ++i)
        gradient[j] += scale * errors[i] * x[(first + i) * features + j];
    if (t == 0)
      for (std::size_t i = 0; i < here; ++i) sum += 0.5f * scale * errors[i] * errors[i];
    __syncthreads();
  }
  if (t == 0) loss[0] = sum;
}

__global__ void descend(float rate, const float* gradient, float* w, std::size_t features) {
  for (std::size_t j = threadIdx.x; j < features; j += kThreads) w[j] -= rate * gradient[j];
}

}  // namespace

void launch_gradient(CUstream_st* stream, const float* x, const float* y, const float* w,
                     float* gradient, float* loss, std::size_t samples, std::size_t features) {
  gradient_of<<<1, kThreads, 0, stream>>>(x, y, w, gradient, loss, samples, features);
  check_launch();
}

void launch_descend(CUstream_st* stream, float rate, const float* gradient, float* w,
                    std::size_t features) {
  descend<<<1, kThreads, 0, stream>>>(rate, gradient, w, features);
  check_launch();
}
