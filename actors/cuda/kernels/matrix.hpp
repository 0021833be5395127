#pragma once

#include <cstdint>

struct CUstream_st;

namespace weft::cuda {

/// `C = beta · C`, plus a bias a column if it is not null, then the rectifier if `relu`: what a
/// product over nothing leaves. C of [m, n], rows `ldc` elements apart. With `beta` 0, C may hold
/// anything. Enqueues; throws `DeviceError` if the launch is refused.
void scale_rows(CUstream_st* stream, float* c, std::int64_t m, std::int64_t n, std::int64_t ldc,
                float beta, const float* bias, bool relu);
void scale_rows(CUstream_st* stream, double* c, std::int64_t m, std::int64_t n, std::int64_t ldc,
                double beta, const double* bias, bool relu);

}  // namespace weft::cuda
