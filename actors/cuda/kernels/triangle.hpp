#pragma once

#include <cstdint>

struct CUstream_st;

/// On square row-major matrices in one device's memory whose rows are `ld` elements apart. Each
/// enqueues on `stream` and returns. Throws `DeviceError` if the launch is refused. Any thread
/// whose current device the stream is of.
namespace weft::cuda {

/// The diagonal becomes NaN unless `*info`, in the device's memory, is 0.
void poison_diagonal(CUstream_st* stream, float* a, std::int64_t n, std::int64_t ld,
                     const int* info);
void poison_diagonal(CUstream_st* stream, double* a, std::int64_t n, std::int64_t ld,
                     const int* info);

/// What is above the diagonal becomes 0.
void clear_above_diagonal(CUstream_st* stream, float* a, std::int64_t n, std::int64_t ld);
void clear_above_diagonal(CUstream_st* stream, double* a, std::int64_t n, std::int64_t ld);

/// Rows of the blocks that `invert_diagonal_blocks` inverts.
inline constexpr std::int64_t kInverted = 32;
/// The inverses of the blocks of `kInverted` rows along the diagonal of a lower triangular l of
/// [n, n] into `w`, which has the place of l's blocks of `width` rows, each with rows `width` apart
/// and the next `width · (width + 1)` behind it. The rest of w's blocks becomes 0. `width` is a
/// multiple of `kInverted`, and n one of `width`.
void invert_diagonal_blocks(CUstream_st* stream, const float* l, std::int64_t n, std::int64_t ldl,
                            float* w, std::int64_t width);
void invert_diagonal_blocks(CUstream_st* stream, const double* l, std::int64_t n, std::int64_t ldl,
                            double* w, std::int64_t width);

}  // namespace weft::cuda
