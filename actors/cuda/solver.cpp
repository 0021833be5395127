#include "actors/cuda/solver.hpp"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>
#include <dlfcn.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "actors/cuda/blas.hpp"
#include "actors/cuda/check.hpp"
#include "actors/cuda/kernels/triangle.hpp"
#include "framework/cuda.hpp"
#include "framework/failure.hpp"

namespace weft::cuda {
namespace {

#define WEFT_TEXT_OF(number) #number
#define WEFT_TEXT(number) WEFT_TEXT_OF(number)
constexpr const char* kLibrary = "libcusolver.so." WEFT_TEXT(CUSOLVER_VER_MAJOR);

// The functions that are used. Stays loaded: handles may live as long as the process.
struct Library {
  decltype(&cusolverDnCreate) create;
  decltype(&cusolverDnDestroy) destroy;
  decltype(&cusolverDnSetStream) set_stream;
  decltype(&cusolverDnCreateParams) create_params;
  decltype(&cusolverDnXpotrf_bufferSize) potrf_bytes;
  decltype(&cusolverDnXpotrf) potrf;
  cusolverDnParams_t params = nullptr;
};

void check(cusolverStatus_t status, const char* call) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    throw DeviceError(std::string(call) + ": cuSOLVER status " +
                      std::to_string(static_cast<int>(status)));
}

void* open_library() {
  Dl_info beside{};
  if (dladdr(reinterpret_cast<const void*>(&cublasCreate_v2), &beside) && beside.dli_fname) {
    const std::string blas = beside.dli_fname;
    if (const auto end = blas.rfind('/'); end != std::string::npos)
      if (void* found = dlopen((blas.substr(0, end + 1) + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL))
        return found;
  }
  return dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
}

Library load() {
  void* const opened = open_library();
  if (!opened) {
    const char* error = dlerror();
    throw DeviceError("cuSOLVER cannot be loaded: " + std::string(error ? error : kLibrary) +
                      "; it is part of the CUDA toolkit: put its folder into LD_LIBRARY_PATH");
  }
  Library made{};
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(opened, name));
    if (!function) throw DeviceError(std::string(kLibrary) + " has no " + name);
  };
  find(made.create, "cusolverDnCreate");
  find(made.destroy, "cusolverDnDestroy");
  find(made.set_stream, "cusolverDnSetStream");
  find(made.create_params, "cusolverDnCreateParams");
  find(made.potrf_bytes, "cusolverDnXpotrf_bufferSize");
  find(made.potrf, "cusolverDnXpotrf");
  check(made.create_params(&made.params), "cusolverDnCreateParams");
  return made;
}

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

template <class T>
constexpr cudaDataType kType = std::is_same_v<T, double> ? CUDA_R_64F : CUDA_R_32F;

// Row-major, each matrix is the transpose of what column-major libraries see.
template <class T>
void run_cholesky(Cuda& cuda, Triangle triangle, T* a, std::int64_t n, std::int64_t lda) {
  if (n == 0) return;
  constexpr std::size_t kAlign = 256;
  const auto half = triangle == Triangle::Lower ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  const Library& solver = library();
  std::size_t on_device = 0, on_host = 0;
  check(solver.potrf_bytes(cuda.solver(), solver.params, half, n, kType<T>, a, lda, kType<T>,
                           &on_device, &on_host),
        "cusolverDnXpotrf_bufferSize");
  on_device = (on_device + kAlign - 1) / kAlign * kAlign;
  char* const scratch = static_cast<char*>(cuda.scratch(on_device + sizeof(int)));
  int* const info = reinterpret_cast<int*>(scratch + on_device);
  thread_local std::vector<char> host;
  if (host.size() < on_host) host.resize(on_host);
  check(solver.potrf(cuda.solver(), solver.params, half, n, kType<T>, a, lda, kType<T>, scratch,
                     on_device, host.data(), on_host, info),
        "cusolverDnXpotrf");
  poison_diagonal(cuda.stream(), a, n, lda, info);
}

cublasStatus_t trsm(cublasHandle_t blas, int n, int rows, const float* l, int ldl, float* b,
                    int ldb) {
  const float one = 1;
  return cublasStrsm(blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T,
                     CUBLAS_DIAG_NON_UNIT, n, rows, &one, l, ldl, b, ldb);
}
cublasStatus_t trsm(cublasHandle_t blas, int n, int rows, const double* l, int ldl, double* b,
                    int ldb) {
  const double one = 1;
  return cublasDtrsm(blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T,
                     CUBLAS_DIAG_NON_UNIT, n, rows, &one, l, ldl, b, ldb);
}
cublasStatus_t syrk(cublasHandle_t blas, int n, int k, const float* factor, const float* a, int lda,
                    float* c, int ldc) {
  const float one = 1;
  return cublasSsyrk(blas, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, n, k, factor, a, lda, &one, c, ldc);
}
cublasStatus_t syrk(cublasHandle_t blas, int n, int k, const double* factor, const double* a,
                    int lda, double* c, int ldc) {
  const double one = 1;
  return cublasDsyrk(blas, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, n, k, factor, a, lda, &one, c, ldc);
}

int narrow(std::int64_t extent) {
  return static_cast<int>(extent);
}

// Row-major: c = factor · a·b for `count` squares of `s`, each a stride behind the one before.
struct Squares {
  int s, count;
};
template <class T>
struct Strided {
  T* data;
  std::int64_t ld, stride;
};
cublasStatus_t multiply(cublasHandle_t blas, const Squares& squares, float factor,
                        const Strided<const float>& a, const Strided<const float>& b,
                        const Strided<float>& c) {
  const float zero = 0;
  const auto [s, count] = squares;
  return cublasSgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, s, s, s, &factor, b.data,
                                   narrow(b.ld), b.stride, a.data, narrow(a.ld), a.stride, &zero,
                                   c.data, narrow(c.ld), c.stride, count);
}
cublasStatus_t multiply(cublasHandle_t blas, const Squares& squares, double factor,
                        const Strided<const double>& a, const Strided<const double>& b,
                        const Strided<double>& c) {
  const double zero = 0;
  const auto [s, count] = squares;
  return cublasDgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, s, s, s, &factor, b.data,
                                   narrow(b.ld), b.stride, a.data, narrow(a.ld), a.stride, &zero,
                                   c.data, narrow(c.ld), c.stride, count);
}

// Blocks along l's diagonal of so many rows are inverted, so that all else are products: cuBLAS's
// own takes 240 us for 1024 x 1024 floats on an H200, where a product takes 60.
constexpr std::int64_t kBlockRows = 512;

// The inverses of l's blocks, from those of half their rows: of (a 0; b c) it is
// (a⁻¹ 0; -c⁻¹·b·a⁻¹ c⁻¹). `between`: n · kBlockRows / 4 elements.
template <class T>
void invert_blocks(Cuda& cuda, const T* l, std::int64_t n, std::int64_t ldl, T* w, T* between) {
  invert_diagonal_blocks(cuda.stream(), l, n, ldl, w, kBlockRows);
  for (std::int64_t s = kInverted; s < kBlockRows; s *= 2) {
    const Squares squares{narrow(s), narrow(n / (2 * s))};
    const std::int64_t stride = 2 * s * (kBlockRows + 1);
    const Strided<const T> upper{w, kBlockRows, stride};
    const Strided<const T> lower{w + s * (kBlockRows + 1), kBlockRows, stride};
    const Strided<T> left{w + s * kBlockRows, kBlockRows, stride};
    WEFT_CHECK_CUBLAS(multiply(cuda.blas(), squares, T{1},
                               Strided<const T>{l + s * ldl, ldl, 2 * s * (ldl + 1)}, upper,
                               Strided<T>{between, s, s * s}));
    WEFT_CHECK_CUBLAS(
        multiply(cuda.blas(), squares, T{-1}, lower, Strided<const T>{between, s, s * s}, left));
  }
}

template <class T>
void solve_by_products(Cuda& cuda, const T* l, std::int64_t n, std::int64_t ldl, T* b,
                       std::int64_t rows, std::int64_t ldb) {
  const auto inverses = static_cast<std::size_t>(n * (kBlockRows + 1)) * sizeof(T);
  const auto rest = static_cast<std::size_t>(std::max(n / 4, rows) * kBlockRows) * sizeof(T);
  constexpr std::size_t kAlign = 256;
  const std::size_t behind_inverses = (inverses + kAlign - 1) / kAlign * kAlign;
  char* const scratch = static_cast<char*>(cuda.scratch(kWorkspaceBytes + behind_inverses + rest));
  const Workspace workspace{scratch, kWorkspaceBytes};
  T* const w = reinterpret_cast<T*>(scratch + kWorkspaceBytes);
  T* const x = reinterpret_cast<T*>(scratch + kWorkspaceBytes + behind_inverses);
  invert_blocks(cuda, l, n, ldl, w, x);
  for (std::int64_t first = 0; first < n; first += kBlockRows) {
    Gemm<T> product;
    product.transpose_b = true;
    product.m = rows;
    product.n = product.k = kBlockRows;
    product.a = b + first;
    product.lda = ldb;
    product.b = w + first * (kBlockRows + 1);
    product.ldb = kBlockRows;
    product.c = x;
    product.ldc = kBlockRows;
    gemm(cuda, product, workspace);
    WEFT_CHECK_CUDA(cudaMemcpy2DAsync(b + first, static_cast<std::size_t>(ldb) * sizeof(T), x,
                                      kBlockRows * sizeof(T), kBlockRows * sizeof(T),
                                      static_cast<std::size_t>(rows), cudaMemcpyDeviceToDevice,
                                      cuda.stream()));
    const std::int64_t next = first + kBlockRows;
    if (next == n) break;
    product.n = n - next;
    product.alpha = -1;
    product.a = x;
    product.lda = kBlockRows;
    product.b = l + next * ldl + first;
    product.ldb = ldl;
    product.beta = 1;
    product.c = b + next;
    product.ldc = ldb;
    gemm(cuda, product, workspace);
  }
}

template <class T>
void run_solve(Cuda& cuda, const T* l, std::int64_t n, std::int64_t ldl, T* b, std::int64_t rows,
               std::int64_t ldb) {
  if (n == 0 || rows == 0) return;
  if (n % kBlockRows == 0 && rows >= kBlockRows / 2)
    solve_by_products(cuda, l, n, ldl, b, rows, ldb);
  else
    WEFT_CHECK_CUBLAS(trsm(cuda.blas(), narrow(n), narrow(rows), l, narrow(ldl), b, narrow(ldb)));
}

}  // namespace

SolverHandle::SolverHandle(CUstream_st* stream) {
  check(library().create(&handle_), "cusolverDnCreate");
  check(library().set_stream(handle_, stream), "cusolverDnSetStream");
}

SolverHandle::~SolverHandle() {
  if (handle_) library().destroy(handle_);
}

void cholesky(Cuda& cuda, Triangle triangle, float* a, std::int64_t n, std::int64_t lda) {
  run_cholesky(cuda, triangle, a, n, lda);
}
void cholesky(Cuda& cuda, Triangle triangle, double* a, std::int64_t n, std::int64_t lda) {
  run_cholesky(cuda, triangle, a, n, lda);
}

void solve_transposed(Cuda& cuda, const float* l, std::int64_t n, std::int64_t ldl, float* b,
                      std::int64_t rows, std::int64_t ldb) {
  run_solve(cuda, l, n, ldl, b, rows, ldb);
}
void solve_transposed(Cuda& cuda, const double* l, std::int64_t n, std::int64_t ldl, double* b,
                      std::int64_t rows, std::int64_t ldb) {
  run_solve(cuda, l, n, ldl, b, rows, ldb);
}

void add_square(Cuda& cuda, float factor, const float* a, std::int64_t n, std::int64_t k,
                std::int64_t lda, float* c, std::int64_t ldc) {
  if (n == 0) return;
  WEFT_CHECK_CUBLAS(
      syrk(cuda.blas(), narrow(n), narrow(k), &factor, a, narrow(lda), c, narrow(ldc)));
}
void add_square(Cuda& cuda, double factor, const double* a, std::int64_t n, std::int64_t k,
                std::int64_t lda, double* c, std::int64_t ldc) {
  if (n == 0) return;
  WEFT_CHECK_CUBLAS(
      syrk(cuda.blas(), narrow(n), narrow(k), &factor, a, narrow(lda), c, narrow(ldc)));
}

}  // namespace weft::cuda
