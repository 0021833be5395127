#include "framework/blas.hpp"

#include <cblas.h>

#include <algorithm>

extern "C" void openblas_set_num_threads(int);
// LAPACK's Fortran interface, which every OpenBLAS of a distribution has; column-major.
extern "C" void spotrf_(const char* half, const int* n, float* a, const int* lda, int* info);
extern "C" void dpotrf_(const char* half, const int* n, double* a, const int* lda, int* info);

namespace weft::blas {
namespace {

// Products of fewer multiply-adds are not worth a second core: about 50 µs of one core's work.
constexpr double kWorthSharing = 2e6;

void set_serial() {
  static const bool done = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  (void)done;
}

template <class T>
void serial(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
            T alpha, const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c,
            std::int64_t ldc) {
  const auto ta = transpose_a ? CblasTrans : CblasNoTrans;
  const auto tb = transpose_b ? CblasTrans : CblasNoTrans;
  const auto i = [](std::int64_t value) { return static_cast<blasint>(value); };
  if constexpr (sizeof(T) == sizeof(float))
    cblas_sgemm(CblasRowMajor, ta, tb, i(m), i(n), i(k), alpha, a, i(lda), b, i(ldb), beta, c,
                i(ldc));
  else
    cblas_dgemm(CblasRowMajor, ta, tb, i(m), i(n), i(k), alpha, a, i(lda), b, i(ldb), beta, c,
                i(ldc));
}

template <class T>
void shared(Cpu& cpu, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
            std::int64_t k, T alpha, const T* a, std::int64_t lda, const T* b, std::int64_t ldb,
            T beta, T* c, std::int64_t ldc) {
  set_serial();
  if (m <= 0 || n <= 0) return;
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const auto team = static_cast<std::int64_t>(cpu.team_size());
  if (team < 2 || work < kWorthSharing) {
    serial(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return;
  }
  // Panels of C along its longer side, two per core so that a late helper still finds work. How C
  // is cut does not change the order in which a product's terms are summed.
  const bool by_rows = m >= n;
  const std::int64_t side = by_rows ? m : n;
  constexpr std::int64_t kStep = 64;  // keeps panels a multiple of OpenBLAS's register blocks
  const std::int64_t panels = std::min<std::int64_t>(2 * team, (side + kStep - 1) / kStep);
  const std::int64_t step = ((side + panels - 1) / panels + kStep - 1) / kStep * kStep;
  cpu.parallel_ranges(
      static_cast<std::size_t>((side + step - 1) / step), 1,
      [&](std::size_t begin, std::size_t end) {
        const std::int64_t first = static_cast<std::int64_t>(begin) * step;
        const std::int64_t last = std::min(side, static_cast<std::int64_t>(end) * step);
        if (by_rows)
          serial(transpose_a, transpose_b, last - first, n, k, alpha,
                 a + first * (transpose_a ? 1 : lda), lda, b, ldb, beta, c + first * ldc, ldc);
        else
          serial(transpose_a, transpose_b, m, last - first, k, alpha, a, lda,
                 b + first * (transpose_b ? ldb : 1), ldb, beta, c + first, ldc);
      });
}

bool factored(std::int64_t n, float* a, std::int64_t lda) {
  const int extent = static_cast<int>(n), distance = static_cast<int>(lda);
  int info = 0;
  spotrf_("U", &extent, a, &distance, &info);
  return info == 0;
}
bool factored(std::int64_t n, double* a, std::int64_t lda) {
  const int extent = static_cast<int>(n), distance = static_cast<int>(lda);
  int info = 0;
  dpotrf_("U", &extent, a, &distance, &info);
  return info == 0;
}

template <class T>
bool factored_on(int threads, std::int64_t n, T* a, std::int64_t lda) {
  set_serial();
  openblas_set_num_threads(threads);
  const bool is_definite = factored(n, a, lda);
  openblas_set_num_threads(1);
  return is_definite;
}

void trsm(blasint rows, blasint n, const float* l, blasint ldl, float* b, blasint ldb) {
  cblas_strsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, rows, n, 1, l, ldl,
              b, ldb);
}
void trsm(blasint rows, blasint n, const double* l, blasint ldl, double* b, blasint ldb) {
  cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, rows, n, 1, l, ldl,
              b, ldb);
}

template <class T>
void solve_rows(Cpu& cpu, std::int64_t n, const T* l, std::int64_t ldl, std::int64_t rows, T* b,
                std::int64_t ldb) {
  constexpr std::int64_t kStep = 64;  // of so many rows each, wherever they are solved
  set_serial();
  if (n <= 0 || rows <= 0) return;
  cpu.parallel_ranges(static_cast<std::size_t>((rows + kStep - 1) / kStep), 1,
                      [&](std::size_t begin, std::size_t end) {
                        for (std::size_t part = begin; part < end; ++part) {
                          const std::int64_t first = static_cast<std::int64_t>(part) * kStep;
                          trsm(static_cast<blasint>(std::min(kStep, rows - first)),
                               static_cast<blasint>(n), l, static_cast<blasint>(ldl),
                               b + first * ldb, static_cast<blasint>(ldb));
                        }
                      });
}

// In squares along the diagonal and what is left of them: half of the work of all of C.
template <class T>
void add_lower(Cpu& cpu, std::int64_t n, std::int64_t k, T factor, const T* a, std::int64_t lda,
               T* c, std::int64_t ldc) {
  constexpr std::int64_t kStep = 256;
  for (std::int64_t first = 0; first < n; first += kStep) {
    const std::int64_t rows = std::min(kStep, n - first);
    shared(cpu, false, true, rows, first + rows, k, factor, a + first * lda, lda, a, lda, T{1},
           c + first * ldc, ldc);
  }
}

}  // namespace

void gemm(Cpu& cpu, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
          std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b,
          std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  shared(cpu, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm(Cpu& cpu, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
          std::int64_t k, double alpha, const double* a, std::int64_t lda, const double* b,
          std::int64_t ldb, double beta, double* c, std::int64_t ldc) {
  shared(cpu, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void add_square(Cpu& cpu, std::int64_t n, std::int64_t k, float factor, const float* a,
                std::int64_t lda, float* c, std::int64_t ldc) {
  add_lower(cpu, n, k, factor, a, lda, c, ldc);
}
void add_square(Cpu& cpu, std::int64_t n, std::int64_t k, double factor, const double* a,
                std::int64_t lda, double* c, std::int64_t ldc) {
  add_lower(cpu, n, k, factor, a, lda, c, ldc);
}

bool cholesky(std::int64_t n, float* a, std::int64_t lda) {
  set_serial();
  return factored(n, a, lda);
}
bool cholesky(std::int64_t n, double* a, std::int64_t lda) {
  set_serial();
  return factored(n, a, lda);
}
bool cholesky_on_threads(int threads, std::int64_t n, float* a, std::int64_t lda) {
  return factored_on(threads, n, a, lda);
}
bool cholesky_on_threads(int threads, std::int64_t n, double* a, std::int64_t lda) {
  return factored_on(threads, n, a, lda);
}

void solve_transposed(Cpu& cpu, std::int64_t n, const float* l, std::int64_t ldl, std::int64_t rows,
                      float* b, std::int64_t ldb) {
  solve_rows(cpu, n, l, ldl, rows, b, ldb);
}
void solve_transposed(Cpu& cpu, std::int64_t n, const double* l, std::int64_t ldl,
                      std::int64_t rows, double* b, std::int64_t ldb) {
  solve_rows(cpu, n, l, ldl, rows, b, ldb);
}

}  // namespace weft::blas
