#include "apps/mlp/small.hpp"

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>

#include "actors/cuda/check.hpp"

namespace weft::mlp::device {
namespace {

namespace cg = cooperative_groups;

constexpr int kTile = 64, kQuads = kTile / 4;  // tiles of 64 x 64, 16 quads of floats wide
constexpr int kBlocksAtOnce = 132;             // multiprocessors of an H200

// Forward: the length of a row of x is cut into 8, a block of the cluster each.
constexpr int kSlices = 8;
constexpr int kSliceQuads = 25;  // at most, and odd: rows of shared memory on different banks
constexpr int kForwardThreads = 256;
constexpr int kForwardBytes = (kTile * kSliceQuads + 4 * kSliceQuads * kQuads) * 16;

// Backward: the minibatch is cut into 2, and each half into 2 groups of 256 threads.
constexpr int kHalves = 2;
constexpr int kMostRows = 256;
constexpr int kGradientThreads = 512;

// Sixteen bytes to shared memory behind the thread's back; zeros if not `there`, and then `from` is
// not read.
__device__ __forceinline__ void fetch(float4* to, const float4* from, bool there) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void close_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kOpen>
__device__ __forceinline__ void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

__device__ __forceinline__ void add_scaled(float4& sum, float factor, const float4& more) {
  sum.x = fmaf(factor, more.x, sum.x);
  sum.y = fmaf(factor, more.y, sum.y);
  sum.z = fmaf(factor, more.z, sum.z);
  sum.w = fmaf(factor, more.w, sum.w);
}

// Grid (8, tiles of rows, tiles of hidden units).
__global__ void __cluster_dims__(kSlices, 1, 1) __launch_bounds__(kForwardThreads)
    forward_kernel(SmallForward product, int slice_quads) {
  extern __shared__ float4 shared[];
  float4* const xs = shared;                        // [64 rows][25]
  float4* const ws = shared + kTile * kSliceQuads;  // [4 · slice_quads][16]
  auto cluster = cg::this_cluster();
  const int slice = static_cast<int>(blockIdx.x), t = static_cast<int>(threadIdx.x);
  const int row0 = static_cast<int>(blockIdx.y) * kTile,
            unit0 = static_cast<int>(blockIdx.z) * kTile;
  const int rows = static_cast<int>(product.rows), quads = product.inputs / 4;
  const int quad0 = slice * slice_quads;

  const auto* x = reinterpret_cast<const float4*>(product.x);
  for (int i = t; i < kTile * slice_quads; i += kForwardThreads) {
    const int r = i / slice_quads, q = i - r * slice_quads;
    const bool there = row0 + r < rows && quad0 + q < quads;
    fetch(xs + r * kSliceQuads + q,
          there ? x + static_cast<std::size_t>(row0 + r) * quads + quad0 + q : x, there);
  }
  const auto* w = reinterpret_cast<const float4*>(product.w1 + unit0);
  const std::size_t w_pitch = static_cast<std::size_t>(product.hidden) / 4;
  const int half = slice_quads / 2 + 1;  // the first part of the sum begins when this much is there
  const auto fetch_weights = [&](int begin, int end) {
    for (int i = begin * kQuads + t; i < end * kQuads; i += kForwardThreads) {
      const int k = i / kQuads, c = i % kQuads, row = quad0 * 4 + k;
      const bool there = row < product.inputs;
      fetch(ws + i, there ? w + row * w_pitch + c : w, there);
    }
    close_group();
  };
  fetch_weights(0, 4 * half);
  fetch_weights(4 * half, 4 * slice_quads);

  const int tr = t / 16, tc = t % 16;  // rows tr, tr + 16 …; units 4·tc …
  float4 sums[4];
  for (auto& sum : sums) sum = make_float4(0, 0, 0, 0);
  const auto add_part = [&](int begin, int end) {
#pragma unroll 4
    for (int q = begin; q < end; ++q) {
      const float4 b0 = ws[(4 * q + 0) * kQuads + tc], b1 = ws[(4 * q + 1) * kQuads + tc],
                   b2 = ws[(4 * q + 2) * kQuads + tc], b3 = ws[(4 * q + 3) * kQuads + tc];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float4 a = xs[(tr + 16 * i) * kSliceQuads + q];
        add_scaled(sums[i], a.x, b0);
        add_scaled(sums[i], a.y, b1);
        add_scaled(sums[i], a.z, b2);
        add_scaled(sums[i], a.w, b3);
      }
    }
  };
  wait_for_groups<1>();
  __syncthreads();
  add_part(0, half);
  wait_for_groups<0>();
  __syncthreads();
  add_part(half, slice_quads);
  __syncthreads();
  float4* const tile = shared;  // [64][16], over what was fetched
#pragma unroll
  for (int i = 0; i < 4; ++i) tile[(tr + 16 * i) * kQuads + tc] = sums[i];
  cluster.sync();

  // Each block finishes 8 of the tile's rows, two units a thread.
  const int r = slice * (kTile / kSlices) + t / 32, c = t % 32;
  float2 sum = make_float2(0, 0);
#pragma unroll
  for (unsigned other = 0; other < kSlices; ++other) {
    const auto* part = reinterpret_cast<const float2*>(cluster.map_shared_rank(tile, other));
    const float2 more = part[r * (kTile / 2) + c];
    sum.x += more.x;
    sum.y += more.y;
  }
  if (row0 + r < rows) {
    float* to = product.h + static_cast<std::size_t>(row0 + r) * product.width + unit0 + 2 * c;
    *reinterpret_cast<float2*>(to) = make_float2(fmaxf(sum.x, 0.0f), fmaxf(sum.y, 0.0f));
  }
  cluster.sync();  // shared memory of a block that has ended cannot be read
}

// Grid (2, tiles of g).
__global__ void __cluster_dims__(kHalves, 1, 1) __launch_bounds__(kGradientThreads)
    gradient_kernel(SmallGradient product, int rows_here) {
  extern __shared__ float4 shared[];
  float4* const xs = shared;                       // [rows_here][16]
  float4* const ds = shared + rows_here * kQuads;  // [rows_here][16]
  auto cluster = cg::this_cluster();
  const int half = static_cast<int>(blockIdx.x), t = static_cast<int>(threadIdx.x);
  const int unit_tiles = product.hidden / kTile;
  const int unit0 = static_cast<int>(blockIdx.y) % unit_tiles * kTile;
  const int input0 = static_cast<int>(blockIdx.y) / unit_tiles * kTile;
  const int rows = static_cast<int>(product.rows);
  const int c = t % kQuads, lane_row = t / kQuads;
  const std::size_t x_pitch = static_cast<std::size_t>(product.pitch) / 4,
                    d_pitch = static_cast<std::size_t>(product.hidden) / 4;
  const auto* x = reinterpret_cast<const float4*>(product.x);
  const auto* d = reinterpret_cast<const float4*>(product.dh + unit0);
  const bool is_column = input0 + 4 * c < product.inputs;
  for (int r = lane_row; r < rows_here; r += kGradientThreads / kQuads) {
    const int row = half * rows_here + r;
    const bool there = row < rows;
    fetch(xs + r * kQuads + c, there && is_column ? x + row * x_pitch + input0 / 4 + c : x,
          there && is_column);
    fetch(ds + r * kQuads + c, there ? d + row * d_pitch + c : d, there);
  }
  close_group();

  // What this thread will change, meanwhile: row `input` of w, units 4·c ….
  const int tile_row = half * (kTile / kHalves) + lane_row, input = input0 + tile_row;
  const bool is_mine = input < product.inputs;
  const std::size_t at = input * d_pitch + static_cast<std::size_t>(unit0) / 4 + c;
  auto* const w = reinterpret_cast<float4*>(product.w);
  auto* const v = reinterpret_cast<float4*>(product.v);
  float4 weight = make_float4(0, 0, 0, 0), speed = weight;
  if (is_mine && w) weight = w[at];
  if (is_mine && v) speed = v[at];

  const int group = t / 256, ti = t / 16 % 16, tu = t % 16;  // inputs 4·ti …, units 4·tu …
  float4 sums[4];
  for (auto& sum : sums) sum = make_float4(0, 0, 0, 0);
  wait_for_groups<0>();
  __syncthreads();
  const int each = rows_here / 2;
  const float4 *a = xs + group * each * kQuads + ti, *b = ds + group * each * kQuads + tu;
#pragma unroll 8
  for (int r = 0; r < each; ++r) {
    const float4 inputs = a[r * kQuads], errors = b[r * kQuads];
    add_scaled(sums[0], inputs.x, errors);
    add_scaled(sums[1], inputs.y, errors);
    add_scaled(sums[2], inputs.z, errors);
    add_scaled(sums[3], inputs.w, errors);
  }
  __syncthreads();
  float4* const tiles = shared;  // [2 groups][64][16], over what was fetched
#pragma unroll
  for (int i = 0; i < 4; ++i) tiles[group * kTile * kQuads + (4 * ti + i) * kQuads + tu] = sums[i];
  cluster.sync();
  float4 gradient = make_float4(0, 0, 0, 0);
#pragma unroll
  for (unsigned block = 0; block < kHalves; ++block) {
    const float4* part = cluster.map_shared_rank(tiles, block);
    add_scaled(gradient, 1, part[tile_row * kQuads + c]);
    add_scaled(gradient, 1, part[kTile * kQuads + tile_row * kQuads + c]);
  }
  if (is_mine && product.g) {
    reinterpret_cast<float4*>(product.g)[at] = gradient;
  } else if (is_mine) {
    if (v) {
      add_scaled(gradient, product.momentum, speed);
      v[at] = gradient;
    }
    add_scaled(weight, -product.rate, gradient);
    w[at] = weight;
  }
  cluster.sync();
}

// More than 48 KiB of dynamic shared memory must be asked for, once a device.
template <class Kernel>
void allow_shared(Kernel* kernel, int bytes, int device, std::atomic<std::uint64_t>& done) {
  const std::uint64_t bit = std::uint64_t{1} << (device % 64);
  if (done.load(std::memory_order_acquire) & bit) return;
  WEFT_CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  done.fetch_or(bit, std::memory_order_release);
}

constexpr int tiles_of(int extent) {
  return (extent + kTile - 1) / kTile;
}

constexpr int gradient_bytes(int rows_here) {
  const int fetched = 2 * rows_here * kQuads * 16, tiles = 2 * kTile * kQuads * 16;
  return fetched > tiles ? fetched : tiles;
}

}  // namespace

bool has_small_forward(std::size_t rows, int inputs, int hidden, int width) {
  return rows > 0 && rows <= 4096 && hidden % kTile == 0 && inputs % 4 == 0 && width % 2 == 0 &&
         inputs <= kSlices * kSliceQuads * 4 && inputs >= 256 &&
         tiles_of(static_cast<int>(rows)) * tiles_of(hidden) * kSlices <= kBlocksAtOnce;
}

void small_forward(CUstream_st* stream, int device, const SmallForward& product) {
  static std::atomic<std::uint64_t> done{0};
  allow_shared(forward_kernel, kForwardBytes, device, done);
  const int slice_quads = (product.inputs / 4 + kSlices - 1) / kSlices;
  const dim3 grid(kSlices, static_cast<unsigned>(tiles_of(static_cast<int>(product.rows))),
                  static_cast<unsigned>(tiles_of(product.hidden)));
  forward_kernel<<<grid, kForwardThreads, kForwardBytes, stream>>>(product, slice_quads);
  WEFT_CHECK_LAUNCH("mlp small_forward");
}

bool has_small_gradient(std::size_t rows, int inputs, int pitch, int hidden) {
  return rows > 0 && rows <= kMostRows && hidden % kTile == 0 && inputs > 0 && inputs % 4 == 0 &&
         pitch % 4 == 0 && tiles_of(inputs) * tiles_of(hidden) * kHalves <= kBlocksAtOnce;
}

void small_gradient(CUstream_st* stream, int device, const SmallGradient& product) {
  static std::atomic<std::uint64_t> done{0};
  allow_shared(gradient_kernel, gradient_bytes(kMostRows / kHalves), device, done);
  // Both halves alike, each a whole number of rows for both groups.
  const int rows_here = (static_cast<int>(product.rows) + 3) / 4 * 2;
  const dim3 grid(kHalves,
                  static_cast<unsigned>(tiles_of(product.inputs) * tiles_of(product.hidden)));
  gradient_kernel<<<grid, kGradientThreads, static_cast<std::size_t>(gradient_bytes(rows_here)),
                    stream>>>(product, rows_here);
  WEFT_CHECK_LAUNCH("mlp small_gradient");
}

}  // namespace weft::mlp::device
