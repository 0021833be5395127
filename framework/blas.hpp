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

/// The lower triangle of `C += factor · A·Aᵀ` for A of [n, k], row-major; what is above C's
/// diagonal may be anything afterwards. Shared as above.
void add_square(Cpu& cpu, std::int64_t n, std::int64_t k, float factor, const float* a,
                std::int64_t lda, float* c, std::int64_t ldc);
void add_square(Cpu& cpu, std::int64_t n, std::int64_t k, double factor, const double* a,
                std::int64_t lda, double* c, std::int64_t ldc);

/// The lower triangle of a positive definite matrix of [n, n], row-major, becomes its Cholesky
/// factor L with L·Lᵀ = A; the other stays. Serial. False, and A is undefined, if the matrix is not
/// positive definite.
bool cholesky(std::int64_t n, float* a, std::int64_t lda);
bool cholesky(std::int64_t n, double* a, std::int64_t lda);
/// The same on `threads` cores by OpenBLAS's own threads, for comparisons: nothing else may call
/// OpenBLAS meanwhile.
bool cholesky_on_threads(int threads, std::int64_t n, float* a, std::int64_t lda);
bool cholesky_on_threads(int threads, std::int64_t n, double* a, std::int64_t lda);

/// B of [rows, n] becomes X with X·Lᵀ = B, for a lower L of [n, n], row-major. Rows are shared with
/// the socket's idle cores.
void solve_transposed(Cpu& cpu, std::int64_t n, const float* l, std::int64_t ldl, std::int64_t rows,
                      float* b, std::int64_t ldb);
void solve_transposed(Cpu& cpu, std::int64_t n, const double* l, std::int64_t ldl,
                      std::int64_t rows, double* b, std::int64_t ldb);

}  // namespace weft::blas
