#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

/// What of the perceptron cuBLAS has no product for. For .cu files: C++17. All enqueue on a stream
/// and throw `DeviceError` if a launch is refused; matrices are row-major and lie in the device's
/// memory. R rows, H hidden, C classes; names as in `layer_kernels.hpp`.
namespace weft::mlp::device {

/// The second layer and the way back to the first.
struct Head {
  float* h = nullptr;  ///< [R, width], rectified; behind the H of a row a one and zeros are written
  std::size_t rows = 0;
  int hidden = 0, width = 0, classes = 0;
  const float* w2 = nullptr;             ///< [width, C], 8-byte aligned; row H is the bias
  const std::uint8_t* labels = nullptr;  ///< [R], below C
  float scale = 0;                       ///< of the errors: 1 / batch
  float* dz = nullptr;                   ///< [R, C]; null: no errors are wanted, neither of dh
  float* dh = nullptr;                   ///< [R, H]
  double* score = nullptr;               ///< gains {loss, right answers}; see softmax_cross_entropy
};

/// True if `run_head` has a kernel for these extents; else `fill_ones`, products, and `mask` do it.
bool has_head(int hidden, int classes);
/// h·w2, softmax, loss, dz and dh in one launch that reads h and writes dh once.
void run_head(CUstream_st* stream, const Head& head);

/// Behind the `hidden` numbers of each row of h [rows, width]: a one, then zeros.
void fill_ones(CUstream_st* stream, float* h, std::size_t rows, int hidden, int width);
/// dh [rows, hidden] becomes 0 where h [rows, width] is not above 0.
void mask(CUstream_st* stream, float* dh, const float* h, std::size_t rows, int hidden, int width);

/// Weights uniform in ±`limit` as `random_symmetric` gives them for the first `weights` elements of
/// w, 0 for the others.
void initialise(CUstream_st* stream, float* w, std::size_t count, std::size_t weights,
                std::uint64_t seed, float limit);

}  // namespace weft::mlp::device
