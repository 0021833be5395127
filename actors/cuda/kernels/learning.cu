#include "actors/cuda/kernels/learning.hpp"

#include "actors/cuda/kernels/launch.cuh"
#include "actors/cuda/kernels/score.cuh"

namespace weft::cuda {
namespace {

constexpr unsigned kWarps = kBlock / 32;

__device__ inline float pixel(const std::uint8_t* row, std::size_t p, std::size_t pixels,
                              float scale, const float* offsets) {
  if (p < pixels) return fmaf(scale, static_cast<float>(row[p]), offsets ? offsets[p] : 0.0f);
  return p == pixels ? 1.0f : 0.0f;
}

// Four pixels a thread; `is_packed`: every row of x begins at 16 bytes and of `from` at 4.
__global__ void __launch_bounds__(kBlock)
    normalise_kernel(float* x, std::uint8_t* y, std::size_t rows, unsigned pixels, unsigned width,
                     ByteRows from, float scale, const float* offsets, bool is_packed) {
  const unsigned quads = (width + 3) / 4;
  for (std::size_t i = first_item(); i < rows * quads; i += item_stride()) {
    const std::size_t r = i / quads;
    const unsigned p = static_cast<unsigned>(i % quads) * 4;
    const std::size_t source = from.order ? from.order[r] : r;
    const std::uint8_t* row = from.bytes + source * from.pitch;
    float* to = x + r * width + p;
    if (p == 0 && from.labels) y[r] = from.labels[source * from.label_pitch];
    if (is_packed && p + 4 <= pixels) {
      const uchar4 bytes = *reinterpret_cast<const uchar4*>(row + p);
      float4 base = make_float4(0, 0, 0, 0);
      if (offsets) base = make_float4(offsets[p], offsets[p + 1], offsets[p + 2], offsets[p + 3]);
      *reinterpret_cast<float4*>(to) =
          make_float4(fmaf(scale, static_cast<float>(bytes.x), base.x),
                      fmaf(scale, static_cast<float>(bytes.y), base.y),
                      fmaf(scale, static_cast<float>(bytes.z), base.z),
                      fmaf(scale, static_cast<float>(bytes.w), base.w));
      continue;
    }
    for (unsigned j = 0; j < 4 && p + j < width; ++j)
      to[j] = pixel(row, p + j, pixels, scale, offsets);
  }
}

// A warp a row.
__global__ void __launch_bounds__(kBlock)
    softmax_kernel(float* z, std::size_t rows, std::size_t classes, const std::uint8_t* labels,
                   float scale, double* score) {
  __shared__ double losses[kWarps], rights[kWarps];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  double loss = 0, right = 0;
  for (std::size_t r = blockIdx.x * kWarps + warp; r < rows;
       r += static_cast<std::size_t>(gridDim.x) * kWarps) {
    float* row = z + r * classes;
    const std::size_t label = labels[r];
    float largest = -INFINITY;
    for (std::size_t c = lane; c < classes; c += 32) largest = fmaxf(largest, row[c]);
    largest = warp_max(largest);
    const float wanted = row[label];
    // The first of the largest, as std::max_element takes it.
    bool is_earlier = false;
    float sum = 0;
    for (std::size_t c = lane; c < classes; c += 32) {
      is_earlier = is_earlier || (c < label && row[c] == largest);
      sum += expf(row[c] - largest);
    }
    sum = warp_sum(sum);
    const bool is_right = wanted == largest && !__any_sync(0xffffffffu, is_earlier);
    if (lane == 0) {
      loss += exact_loss(logf(sum) + largest - wanted);
      right += is_right ? 1 : 0;
    }
    if (scale == 0) continue;
    __syncwarp();  // every lane has read the row's logits
    const float inverse = 1 / sum;
    for (std::size_t c = lane; c < classes; c += 32)
      row[c] = (expf(row[c] - largest) * inverse - (c == label ? 1.0f : 0.0f)) * scale;
  }
  if (lane == 0) {
    losses[warp] = loss;
    rights[warp] = right;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned w = 1; w < kWarps; ++w) {
      loss += losses[w];
      right += rights[w];
    }
    atomicAdd(score, loss);
    atomicAdd(score + 1, right);
  }
}

}  // namespace

void normalise(CUstream_st* stream, float* x, std::uint8_t* y, std::size_t rows, std::size_t pixels,
               std::size_t width, const ByteRows& from, float scale, const float* offsets) {
  if (rows == 0 || width == 0) return;
  const bool is_packed = is_pack_aligned(x) && width % 4 == 0 && from.pitch % 4 == 0 &&
                         reinterpret_cast<std::uintptr_t>(from.bytes) % 4 == 0;
  normalise_kernel<<<blocks_for(rows * ((width + 3) / 4)), kBlock, 0, stream>>>(
      x, y, rows, static_cast<unsigned>(pixels), static_cast<unsigned>(width), from, scale, offsets,
      is_packed);
  WEFT_CHECK_LAUNCH("normalise");
}

void softmax_cross_entropy(CUstream_st* stream, float* z, std::size_t rows, std::size_t classes,
                           const std::uint8_t* labels, float scale, double* score) {
  if (rows == 0 || classes == 0) return;
  const std::size_t blocks = (rows + kWarps - 1) / kWarps;
  softmax_kernel<<<static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), kBlock, 0,
                   stream>>>(z, rows, classes, labels, scale, score);
  WEFT_CHECK_LAUNCH("softmax_cross_entropy");
}

}  // namespace weft::cuda
