#pragma once

#include <cstddef>

struct CUstream_st;

namespace weft::mlp::device {

/// Columns of d up to which `thin_product` has a kernel.
inline constexpr int kThinColumns = 16;

/// A gradient with few columns and what becomes of it: g = rows `first` … of aᵀ·d, `height` of
/// them. One of: `g` set: it is stored there; `w` set: w -= rate·g; both `w` and `v`: v =
/// momentum·v + g, w -= rate·v.
struct ThinProduct {
  const float* a = nullptr;  ///< [rows, width]
  const float* d = nullptr;  ///< [rows, columns]
  std::size_t rows = 0;
  int width = 0, first = 0, height = 0, columns = 0;
  float* g = nullptr;  ///< [height, columns], as w and v
  float* w = nullptr;
  float* v = nullptr;
  float rate = 0, momentum = 0;
};

/// One launch, which reads a once; products of cuBLAS are made for wider matrices. Sums are formed
/// in a fixed order. Enqueues; throws `DeviceError` if the launch is refused.
void thin_product(CUstream_st* stream, const ThinProduct& product);

}  // namespace weft::mlp::device
