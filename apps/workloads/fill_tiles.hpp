#pragma once

#include <cstdint>

struct CUstream_st;

/// No C++20 here: the `.cu` file includes it.
namespace weft::workloads::device {

/// Which part of an n x n matrix a tile of [rows, columns] is.
struct TilePlace {
  std::int64_t n, first_row, first_column, rows, columns;
};

/// The elements of `workloads::random_tile` and `workloads::definite_tile`, to the bit. Each
/// enqueues on `stream` and returns. Throws `DeviceError` if the launch is refused.
void random_tile(CUstream_st* stream, float* tile, const TilePlace& place, std::uint64_t seed);
void random_tile(CUstream_st* stream, double* tile, const TilePlace& place, std::uint64_t seed);
void definite_tile(CUstream_st* stream, float* tile, const TilePlace& place, std::uint64_t seed);
void definite_tile(CUstream_st* stream, double* tile, const TilePlace& place, std::uint64_t seed);

}  // namespace weft::workloads::device
