#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

/// What training needs besides products. Each enqueues on `stream` and returns; throws
/// `DeviceError` if a launch is refused. Matrices are row-major.
namespace weft::cuda {

/// Rows of bytes in the device's memory, each with a label.
struct ByteRows {
  const std::uint8_t* bytes = nullptr;
  std::size_t pitch = 0;                 ///< bytes from row to row
  const std::uint8_t* labels = nullptr;  ///< null: no labels are wanted
  std::size_t label_pitch = 1;           ///< bytes from label to label
  const std::uint32_t* order = nullptr;  ///< row r is taken from row `order[r]`; null: from row r
};

/// Rows of bytes become rows of numbers: `x[r, p] = scale · byte + offsets[p]` for p < pixels, 1
/// for p = pixels, 0 behind it; x of [rows, width], width > pixels. `offsets` may be null: 0.
/// Labels go to `y`.
void normalise(CUstream_st* stream, float* x, std::uint8_t* y, std::size_t rows, std::size_t pixels,
               std::size_t width, const ByteRows& from, float scale, const float* offsets);

/// Softmax and cross-entropy of `rows` rows of logits z [rows, classes], with labels below
/// `classes`: z becomes `(softmax(z) - onehot(label)) · scale` if `scale` is not 0, else it stays.
/// score[0] gains the sum of the rows' losses, each rounded to 2^-26, and score[1] the number of
/// rows whose first largest logit is the label's. The sums are exact below 2^27, so that they do
/// not depend on the order in which they are added, and every run gives the same bits.
void softmax_cross_entropy(CUstream_st* stream, float* z, std::size_t rows, std::size_t classes,
                           const std::uint8_t* labels, float scale, double* score);

}  // namespace weft::cuda
