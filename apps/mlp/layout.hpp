#pragma once

#include <cstdint>

namespace weft::mlp {

/// Rows of matrices are this many floats, or a multiple: whole sectors of a GPU's memory, and loads
/// of 16 bytes; products of rows that begin anywhere are up to three times as slow there.
inline constexpr std::int64_t kRowMultiple = 8;

/// Length of a row that holds `extent` numbers and the one that stands for the bias.
constexpr std::int64_t row_with_one(std::int64_t extent) {
  return (extent + 1 + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
}

/// Bytes of a record: the pixels of a sample, its label, zeros up to a multiple of 16.
constexpr std::int64_t record_bytes(std::int64_t pixels) {
  return (pixels + 1 + 15) / 16 * 16;
}

}  // namespace weft::mlp
