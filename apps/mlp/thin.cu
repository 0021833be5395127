#include "apps/mlp/thin.hpp"

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "actors/cuda/check.hpp"

namespace weft::mlp::device {
namespace {

namespace cg = cooperative_groups;

constexpr int kThinLanes = 32;

// A block sums 32 rows of g: a lane a row, and the rows of a and d shared out among its warps and
// the blocks of its cluster. Their sums meet in shared memory.
template <int kWarps, int kColumns, int kSlices, int kTogether>
__global__ void __cluster_dims__(1, kSlices, 1) __launch_bounds__(kWarps * 32)
    thin_kernel(ThinProduct product) {
  __shared__ float partial[kWarps][kColumns][kThinLanes];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int at = static_cast<int>(blockIdx.x) * kThinLanes + lane;
  const int columns = kColumns == 10 ? 10 : product.columns;
  const float* a = product.a + product.first + (at < product.height ? at : 0);
  float sums[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) sums[c] = 0;
  constexpr std::size_t kStride = static_cast<std::size_t>(kWarps) * kSlices;
  const auto add_row = [&](std::size_t r, float x) {
    const float* d = product.d + r * static_cast<std::size_t>(columns);
    if constexpr (kColumns == 10) {  // rows of 40 bytes: pairs are aligned
#pragma unroll
      for (int c = 0; c < kColumns; c += 2) {
        const float2 pair = __ldg(reinterpret_cast<const float2*>(d + c));
        sums[c] = fmaf(x, pair.x, sums[c]);
        sums[c + 1] = fmaf(x, pair.y, sums[c + 1]);
      }
    } else {
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        if (c < columns) sums[c] = fmaf(x, __ldg(d + c), sums[c]);
    }
  };
  const std::size_t width = static_cast<std::size_t>(product.width);
  std::size_t r = blockIdx.y * kWarps + static_cast<std::size_t>(warp);
  // Some rows of a are on their way at once: it comes from memory, d from a cache.
  for (; r + (kTogether - 1) * kStride < product.rows; r += kTogether * kStride) {
    float x[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) x[k] = a[(r + k * kStride) * width];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) add_row(r + k * kStride, x[k]);
  }
  for (; r < product.rows; r += kStride) add_row(r, a[r * width]);
#pragma unroll
  for (int c = 0; c < kColumns; ++c) partial[warp][c][lane] = sums[c];
  __syncthreads();

  float sum = 0;
  const int c = warp;  // a warp a column
  static_assert(kWarps >= kColumns, "a warp a column");
  if (c < columns)
    for (int i = 0; i < kWarps; ++i) sum += partial[i][c][lane];
  if constexpr (kSlices > 1) {
    const auto cluster = cg::this_cluster();
    __syncthreads();
    if (c < columns) partial[0][c][lane] = sum;
    cluster.sync();
    if (blockIdx.y == 0 && c < columns)
      for (unsigned slice = 1; slice < kSlices; ++slice)
        sum += cluster.map_shared_rank(&partial[0][c][lane], slice)[0];
    cluster.sync();  // shared memory of a block that has ended cannot be read
    if (blockIdx.y > 0) return;
  }
  if (c >= columns || at >= product.height) return;
  const std::size_t to = static_cast<std::size_t>(at) * columns + c;
  if (product.g) {
    product.g[to] = sum;
    return;
  }
  if (product.v) sum = product.v[to] = fmaf(product.momentum, product.v[to], sum);
  product.w[to] = fmaf(-product.rate, sum, product.w[to]);
}

template <int kWarps, int kColumns>
void launch(cudaStream_t stream, const ThinProduct& product) {
  const auto blocks = static_cast<unsigned>((product.height + kThinLanes - 1) / kThinLanes);
  constexpr std::size_t kManyRows = 4 * kWarps;
  constexpr unsigned kManyBlocks = 66;  // half of an H200's multiprocessors
  if (product.rows > kManyRows && blocks < kManyBlocks)
    thin_kernel<kWarps, kColumns, 4, 4><<<dim3(blocks, 4), kWarps * 32, 0, stream>>>(product);
  else
    thin_kernel<kWarps, kColumns, 1, 16><<<blocks, kWarps * 32, 0, stream>>>(product);
  WEFT_CHECK_LAUNCH("mlp thin_product");
}

}  // namespace

void thin_product(CUstream_st* stream, const ThinProduct& product) {
  if (product.height == 0 || product.columns == 0) return;
  const bool is_pair_aligned = reinterpret_cast<std::size_t>(product.d) % 8 == 0;
  if (product.columns == 10 && is_pair_aligned)
    launch<32, 10>(stream, product);
  else
    launch<16, kThinColumns>(stream, product);
}

}  // namespace weft::mlp::device
