#pragma once

#include <cstdint>

struct CUstream_st;
struct cusolverDnContext;

namespace weft {
class Cuda;
}

namespace weft::cuda {

/// A cuSOLVER handle of one stream. cuSOLVER is loaded when the first one is made, for few programs
/// want it and it is some 100 MB: from beside cuBLAS or from where libraries are looked for.
class SolverHandle {
 public:
  /// Blocks for some milliseconds, for the first one longer. Throws `DeviceError` if cuSOLVER
  /// cannot be loaded.
  explicit SolverHandle(CUstream_st* stream);
  ~SolverHandle();
  SolverHandle(const SolverHandle&) = delete;
  SolverHandle& operator=(const SolverHandle&) = delete;

  [[nodiscard]] cusolverDnContext* get() const { return handle_; }

 private:
  cusolverDnContext* handle_ = nullptr;
};

/// Which half of a symmetric matrix is read and written, with its diagonal.
enum class Triangle : std::uint8_t { Lower, Upper };

/// Matrices are row-major in the device's memory; `lda`, `ldb`, `ldl` are the distances of rows in
/// elements. Each enqueues on `cuda.stream()` and returns. Sums are in the elements' precision.
/// Throws `DeviceError` for what the libraries refuse.

/// The Cholesky factor of a positive definite n x n matrix, by cuSOLVER, in its place: l with
/// l·lᵀ = a for `Lower`, lᵀ for `Upper`. The other triangle stays as it is. Takes `cuda.scratch`.
/// That a matrix is not positive definite is known on the device alone, and nobody waits for it:
/// its diagonal becomes NaN, and with it whatever is made of it.
void cholesky(Cuda& cuda, Triangle triangle, float* a, std::int64_t n, std::int64_t lda);
void cholesky(Cuda& cuda, Triangle triangle, double* a, std::int64_t n, std::int64_t lda);

/// b of [rows, n] becomes x with x·lᵀ = b, for a lower l of [n, n]. Where n is a multiple of 512,
/// through the inverses of l's diagonal blocks of so many rows, which cost accuracy if those are
/// badly conditioned; the products of floats are then as `cuda.precision()` says. Takes
/// `cuda.scratch`.
void solve_transposed(Cuda& cuda, const float* l, std::int64_t n, std::int64_t ldl, float* b,
                      std::int64_t rows, std::int64_t ldb);
void solve_transposed(Cuda& cuda, const double* l, std::int64_t n, std::int64_t ldl, double* b,
                      std::int64_t rows, std::int64_t ldb);

/// c += factor · a·aᵀ in the lower triangle of c of [n, n], for a of [n, k]; the rest of c stays.
void add_square(Cuda& cuda, float factor, const float* a, std::int64_t n, std::int64_t k,
                std::int64_t lda, float* c, std::int64_t ldc);
void add_square(Cuda& cuda, double factor, const double* a, std::int64_t n, std::int64_t k,
                std::int64_t lda, double* c, std::int64_t ldc);

}  // namespace weft::cuda
