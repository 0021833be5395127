#include "actors/cuda/kernels/triangle.hpp"

#include "actors/cuda/kernels/launch.cuh"

namespace weft::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kBlock)
    poison_kernel(T* a, std::int64_t n, std::int64_t ld, const int* info) {
  if (*info == 0) return;
  const T nan = static_cast<T>(nanf(""));
  for (std::int64_t i = threadIdx.x; i < n; i += kBlock) a[i * (ld + 1)] = nan;
}

// A row a block, and as many further ones as there are no blocks for.
template <class T>
__global__ void __launch_bounds__(kBlock)
    clear_above_kernel(T* a, std::int64_t n, std::int64_t ld) {
  for (std::int64_t row = blockIdx.x; row < n; row += gridDim.x)
    for (std::int64_t j = row + 1 + threadIdx.x; j < n; j += kBlock) a[row * ld + j] = 0;
}

// A block of `kInverted` rows a thread block: one warp inverts it, a column a lane, while the
// others clear what is beside it.
template <class T>
__global__ void __launch_bounds__(kBlock)
    invert_kernel(const T* l, std::int64_t ldl, T* w, std::int64_t width) {
  constexpr int kRows = static_cast<int>(kInverted);
  __shared__ T factor[kRows][kRows + 1], inverse[kRows][kRows + 1];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kRows;
  const int t = static_cast<int>(threadIdx.x);
  for (int at = t; at < kRows * kRows; at += static_cast<int>(kBlock))
    factor[at / kRows][at % kRows] = l[(first + at / kRows) * ldl + first + at % kRows];
  __syncthreads();
  if (t < kRows) {
    for (int i = 0; i < kRows; ++i) {
      T sum = i == t ? T(1) : T(0);
      for (int k = t; k < i; ++k) sum -= factor[i][k] * inverse[k][t];
      inverse[i][t] = i < t ? T(0) : sum / factor[i][i];
    }
  }
  __syncthreads();
  const std::int64_t column = first % width;
  T* const rows = w + first / width * width * (width + 1) + column * width;
  for (std::int64_t at = t; at < kRows * width; at += kBlock) {
    const auto i = static_cast<int>(at / width);
    const std::int64_t j = at % width - column;
    rows[at] = j >= 0 && j < kRows ? inverse[i][j] : T(0);
  }
}

template <class T>
void run_invert(CUstream_st* stream, const T* l, std::int64_t n, std::int64_t ldl, T* w,
                std::int64_t width) {
  if (n == 0) return;
  invert_kernel<<<static_cast<unsigned>(n / kInverted), kBlock, 0, stream>>>(l, ldl, w, width);
  WEFT_CHECK_LAUNCH("invert_diagonal_blocks");
}

template <class T>
void run_poison(CUstream_st* stream, T* a, std::int64_t n, std::int64_t ld, const int* info) {
  if (n == 0) return;
  poison_kernel<<<1, kBlock, 0, stream>>>(a, n, ld, info);
  WEFT_CHECK_LAUNCH("poison_diagonal");
}

template <class T>
void run_clear_above(CUstream_st* stream, T* a, std::int64_t n, std::int64_t ld) {
  if (n < 2) return;
  const auto rows = static_cast<std::size_t>(n);
  clear_above_kernel<<<static_cast<unsigned>(rows < kMostBlocks ? rows : kMostBlocks), kBlock, 0,
                       stream>>>(a, n, ld);
  WEFT_CHECK_LAUNCH("clear_above_diagonal");
}

}  // namespace

void poison_diagonal(CUstream_st* stream, float* a, std::int64_t n, std::int64_t ld,
                     const int* info) {
  run_poison(stream, a, n, ld, info);
}
void poison_diagonal(CUstream_st* stream, double* a, std::int64_t n, std::int64_t ld,
                     const int* info) {
  run_poison(stream, a, n, ld, info);
}

void invert_diagonal_blocks(CUstream_st* stream, const float* l, std::int64_t n, std::int64_t ldl,
                            float* w, std::int64_t width) {
  run_invert(stream, l, n, ldl, w, width);
}
void invert_diagonal_blocks(CUstream_st* stream, const double* l, std::int64_t n, std::int64_t ldl,
                            double* w, std::int64_t width) {
  run_invert(stream, l, n, ldl, w, width);
}

void clear_above_diagonal(CUstream_st* stream, float* a, std::int64_t n, std::int64_t ld) {
  run_clear_above(stream, a, n, ld);
}
void clear_above_diagonal(CUstream_st* stream, double* a, std::int64_t n, std::int64_t ld) {
  run_clear_above(stream, a, n, ld);
}

}  // namespace weft::cuda
