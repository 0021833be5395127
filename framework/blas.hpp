#pragma once

#include <cstdint>

#include "framework/cpu.hpp"

namespace weft::blas {

/// `C = alpha · op(A) · op(B) + beta · C`, all row-major. Serial inside; parts of C are shared with
/// the socket's idle cores when the product is large. `lda`, `ldb`, `ldc` are row lengths in
/// elements.
void gemm(Cpu& cpu, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
          std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b,
          std::int64_t ldb, float beta, float* c, std::int64_t ldc);
void gemm(Cpu& cpu, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
          std::int64_t k, double alpha, const double* a, std::int64_t lda, const double* b,
          std::int64_t ldb, double beta, double* c, std::int64_t ldc);

}  // namespace weft::blas
