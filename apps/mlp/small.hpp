#pragma once

#include <cstddef>

struct CUstream_st;

/// Products in fp32 for layers and minibatches so small that cuBLAS has too few tiles for the GPU:
/// the sum of each tile is shared out among the blocks of a cluster, which add up through shared
/// memory. Sums are formed in a fixed order. For Hopper; all pointers 16-byte aligned; row-major.
namespace weft::mlp::device {

/// h = relu(x·w1) for x [rows, inputs], w1 [inputs, hidden]; rows of h are `width` apart.
struct SmallForward {
  const float* x = nullptr;
  const float* w1 = nullptr;
  float* h = nullptr;
  std::size_t rows = 0;
  int inputs = 0, hidden = 0, width = 0;
};
/// Whether `small_forward` is made for these extents.
bool has_small_forward(std::size_t rows, int inputs, int hidden, int width);
void small_forward(CUstream_st* stream, int device, const SmallForward& product);

/// g = xᵀ·dh for x [rows, inputs], dh [rows, hidden], and w -= rate·g, or with `v` v = momentum·v +
/// g, w -= rate·v. w and v are [inputs, hidden].
struct SmallDescend {
  const float* x = nullptr;
  const float* dh = nullptr;
  float* w = nullptr;
  float* v = nullptr;
  std::size_t rows = 0;
  int inputs = 0, hidden = 0;
  float rate = 0, momentum = 0;
};
bool has_small_descend(std::size_t rows, int inputs, int hidden);
void small_descend(CUstream_st* stream, int device, const SmallDescend& product);

}  // namespace weft::mlp::device
