#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "actors/cuda/check.hpp"

namespace weft::cuda {

constexpr unsigned kBlock = 256;
/// Some blocks a multiprocessor: grid-stride loops do the rest.
constexpr std::size_t kMostBlocks = 1056;

/// Blocks for `items` with one item a thread, as far as a grid-stride loop wants them.
inline unsigned blocks_for(std::size_t items) {
  const std::size_t blocks = (items + kBlock - 1) / kBlock;
  return static_cast<unsigned>(blocks == 0 ? 1 : blocks < kMostBlocks ? blocks : kMostBlocks);
}

/// As many `T` as one load or store of 16 bytes takes.
template <class T>
struct alignas(16) Pack {
  static constexpr std::size_t kSize = 16 / sizeof(T);
  T items[kSize];
};

inline bool is_pack_aligned(const void* a, const void* b = nullptr, const void* c = nullptr) {
  return ((reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
           reinterpret_cast<std::uintptr_t>(c)) &
          15) == 0;
}

__device__ inline std::size_t first_item() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::size_t item_stride() {
  return static_cast<std::size_t>(gridDim.x) * blockDim.x;
}

/// Sum over the warp, in every lane; always in the same order.
template <class T>
__device__ inline T warp_sum(T value) {
#pragma unroll
  for (int other = 16; other > 0; other /= 2) value += __shfl_xor_sync(0xffffffffu, value, other);
  return value;
}

__device__ inline float warp_max(float value) {
#pragma unroll
  for (int other = 16; other > 0; other /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, other));
  return value;
}

}  // namespace weft::cuda
