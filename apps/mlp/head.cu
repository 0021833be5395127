#include "apps/mlp/head.hpp"

#include <cuda_runtime.h>

#include "actors/cuda/check.hpp"
#include "actors/cuda/kernels/launch.cuh"
#include "actors/cuda/kernels/score.cuh"

namespace weft::mlp::device {
namespace {

using cuda::first_item;
using cuda::item_stride;

constexpr unsigned kAll = 0xffffffffu;
constexpr int kLanes = 16;  // half a warp: a lane a class

// One step of adding up 16 numbers a lane over the warp: half of the numbers go to the lane
// `kOther` away, so that each of both has half as many left.
template <int kOther, int kLeft>
__device__ __forceinline__ void halve(float (&sums)[kLanes], unsigned lane) {
  const bool is_upper = (lane & kOther) != 0;
#pragma unroll
  for (int i = 0; i < kLeft; ++i) {
    const float given = is_upper ? sums[i] : sums[i + kLeft];
    const float kept = is_upper ? sums[i + kLeft] : sums[i];
    sums[i] = kept + __shfl_xor_sync(kAll, given, kOther);
  }
}

// Sum number `lane / 2` of 16 over the warp's lanes.
__device__ __forceinline__ float sum_of_lane(float (&sums)[kLanes], unsigned lane) {
  halve<16, 8>(sums, lane);
  halve<8, 4>(sums, lane);
  halve<4, 2>(sums, lane);
  halve<2, 1>(sums, lane);
  return sums[0] + __shfl_xor_sync(kAll, sums[0], 1);
}

__device__ __forceinline__ float half_warp_max(float value) {
#pragma unroll
  for (int other = kLanes / 2; other > 0; other /= 2)
    value = fmaxf(value, __shfl_xor_sync(kAll, value, other));
  return value;
}
__device__ __forceinline__ float half_warp_sum(float value) {
#pragma unroll
  for (int other = kLanes / 2; other > 0; other /= 2) value += __shfl_xor_sync(kAll, value, other);
  return value;
}

// A block takes one row after the other. Its threads keep the whole of w2 in registers, thread t
// the rows t, t + kThreads …, and a row's h too, so that h is read and dh written once.
template <int kThreads, int kEach, int kClasses>
__global__ void __launch_bounds__(kThreads) head_kernel(Head head) {
  constexpr int kWarps = kThreads / 32;
  __shared__ float partial[2][kWarps][kLanes];
  const int t = static_cast<int>(threadIdx.x), warp = t / 32;
  const unsigned lane = threadIdx.x % 32;
  const int c = static_cast<int>(lane) % kLanes;
  const int hidden = head.hidden, classes = kClasses == 10 ? 10 : head.classes;

  float w[kEach][kClasses], next[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int j = t + i * kThreads;
    if constexpr (kClasses == 10) {  // rows of 40 bytes: pairs are aligned
#pragma unroll
      for (int k = 0; k < kClasses; k += 2) {
        float2 pair = make_float2(0, 0);
        if (j < hidden) pair = reinterpret_cast<const float2*>(head.w2 + j * 10)[k / 2];
        w[i][k] = pair.x;
        w[i][k + 1] = pair.y;
      }
    } else {
#pragma unroll
      for (int k = 0; k < kClasses; ++k)
        w[i][k] = j < hidden && k < classes ? head.w2[j * classes + k] : 0.0f;
    }
  }
  const float bias = c < classes ? head.w2[hidden * classes + c] : 0.0f;
  const auto fetch = [&](std::size_t row) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int j = t + i * kThreads;
      next[i] = j < hidden ? head.h[row * static_cast<std::size_t>(head.width) + j] : 0.0f;
    }
  };
  double loss = 0, right = 0;
  int side = 0;
  if (blockIdx.x < head.rows) fetch(blockIdx.x);
  for (std::size_t row = blockIdx.x; row < head.rows; row += gridDim.x, side ^= 1) {
    float h[kEach], sums[kLanes];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) sums[k] = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      h[i] = next[i];
#pragma unroll
      for (int k = 0; k < kClasses; ++k) sums[k] = fmaf(h[i], w[i][k], sums[k]);
    }
    if (row + gridDim.x < head.rows) fetch(row + gridDim.x);
    const int label = head.labels[row];
    const float sum = sum_of_lane(sums, lane);
    if (lane % 2 == 0) partial[side][warp][lane / 2] = sum;
    // One barrier a row: the other side is written only when all warps are past this one.
    __syncthreads();

    // Every warp finishes the row by itself, each half of it with a lane a class.
    float z = bias;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) z += partial[side][i][c];
    if (c >= classes) z = -INFINITY;
    const float largest = half_warp_max(z);
    const float wanted = __shfl_sync(kAll, z, label);
    const float power = expf(z - largest);
    const float whole = half_warp_sum(power);
    if (warp == 0) {
      const bool is_first = !__any_sync(kAll, c < label && z == largest);
      if (lane == 0) {
        loss += cuda::exact_loss(logf(whole) + largest - wanted);
        right += wanted == largest && is_first ? 1 : 0;
      }
    }
    float* behind = head.h + row * static_cast<std::size_t>(head.width) + hidden;
    if (t < head.width - hidden) behind[t] = t == 0 ? 1.0f : 0.0f;
    if (!head.dz) continue;
    const float error = (power / whole - (c == label ? 1.0f : 0.0f)) * head.scale;
    if (warp == 0 && lane < static_cast<unsigned>(classes))
      head.dz[row * static_cast<std::size_t>(classes) + lane] = error;
    float back[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) back[i] = 0;
#pragma unroll
    for (int k = 0; k < kClasses; ++k) {
      const float d = __shfl_sync(kAll, error, k);
#pragma unroll
      for (int i = 0; i < kEach; ++i) back[i] = fmaf(d, w[i][k], back[i]);
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int j = t + i * kThreads;
      if (j < hidden)
        head.dh[row * static_cast<std::size_t>(hidden) + j] = h[i] > 0 ? back[i] : 0.0f;
    }
  }
  if (t == 0 && blockIdx.x < head.rows) {
    atomicAdd(head.score, loss);
    atomicAdd(head.score + 1, right);
  }
}

// `blocks` is what an H200 runs at once, or a few rows a block at least.
template <int kThreads, int kEach, int kClasses>
void launch(cudaStream_t stream, const Head& head, std::size_t blocks) {
  const auto grid = static_cast<unsigned>(head.rows < blocks ? head.rows : blocks);
  head_kernel<kThreads, kEach, kClasses><<<grid, kThreads, 0, stream>>>(head);
  WEFT_CHECK_LAUNCH("mlp head");
}

template <int kClasses>
void launch_for_hidden(cudaStream_t stream, const Head& head) {
  if (head.hidden <= 256)
    launch<64, 4, kClasses>(stream, head, 132 * 8);
  else if (head.hidden <= 1024)
    launch<256, 4, kClasses>(stream, head, 132 * 2);
  else if constexpr (kClasses == 10)
    launch<512, 8, kClasses>(stream, head, 132);
}

__global__ void fill_ones_kernel(float* h, std::size_t rows, int hidden, int width) {
  const auto more = static_cast<std::size_t>(width - hidden);
  for (std::size_t i = first_item(); i < rows * more; i += item_stride())
    h[i / more * static_cast<std::size_t>(width) + static_cast<std::size_t>(hidden) + i % more] =
        i % more == 0 ? 1.0f : 0.0f;
}

__global__ void mask_kernel(float* dh, const float* h, std::size_t rows, std::size_t hidden,
                            std::size_t width) {
  for (std::size_t i = first_item(); i < rows * hidden; i += item_stride())
    if (!(h[i / hidden * width + i % hidden] > 0)) dh[i] = 0;
}

__global__ void initialise_kernel(float* w, std::size_t count, std::size_t weights,
                                  std::uint64_t seed, float limit) {
  for (std::size_t i = first_item(); i < count; i += item_stride()) {
    std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    const float unit =
        static_cast<float>(static_cast<std::uint32_t>(z >> 40)) * 5.9604644775390625e-8f;  // 2^-24
    w[i] = i < weights ? limit * (2 * unit - 1) : 0.0f;
  }
}

}  // namespace

bool has_head(int hidden, int classes) {
  return classes == 10 ? hidden <= 4096 : classes <= kLanes && hidden <= 1024;
}

void run_head(CUstream_st* stream, const Head& head) {
  if (head.rows == 0) return;
  if (head.classes == 10)
    launch_for_hidden<10>(stream, head);
  else
    launch_for_hidden<kLanes>(stream, head);
}

void fill_ones(CUstream_st* stream, float* h, std::size_t rows, int hidden, int width) {
  if (rows == 0 || width <= hidden) return;
  fill_ones_kernel<<<cuda::blocks_for(rows * static_cast<std::size_t>(width - hidden)),
                     cuda::kBlock, 0, stream>>>(h, rows, hidden, width);
  WEFT_CHECK_LAUNCH("mlp fill_ones");
}

void mask(CUstream_st* stream, float* dh, const float* h, std::size_t rows, int hidden, int width) {
  const auto columns = static_cast<std::size_t>(hidden);
  if (rows * columns == 0) return;
  mask_kernel<<<cuda::blocks_for(rows * columns), cuda::kBlock, 0, stream>>>(
      dh, h, rows, columns, static_cast<std::size_t>(width));
  WEFT_CHECK_LAUNCH("mlp mask");
}

void initialise(CUstream_st* stream, float* w, std::size_t count, std::size_t weights,
                std::uint64_t seed, float limit) {
  if (count == 0) return;
  initialise_kernel<<<cuda::blocks_for(count), cuda::kBlock, 0, stream>>>(w, count, weights, seed,
                                                                          limit);
  WEFT_CHECK_LAUNCH("mlp initialise");
}

}  // namespace weft::mlp::device
