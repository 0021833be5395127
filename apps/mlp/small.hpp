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

/// g = xᵀ·dh for x [rows, inputs] with rows `pitch` apart and dh [rows, hidden], and what becomes
/// of it. One of: `g` set: it is stored there; `w` set: w -= rate·g; both `w` and `v`: v =
/// momentum·v + g, w -= rate·v. All of [inputs, hidden].
struct SmallGradient {
  const float* x = nullptr;
  const float* dh = nullptr;
  float* g = nullptr;
  float* w = nullptr;
  float* v = nullptr;
  std::size_t rows = 0;
  int inputs = 0, pitch = 0, hidden = 0;
  float rate = 0, momentum = 0;
};
bool has_small_gradient(std::size_t rows, int inputs, int pitch, int hidden);
void small_gradient(CUstream_st* stream, int device, const SmallGradient& product);

}  // namespace weft::mlp::device
