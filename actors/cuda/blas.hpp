#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {
class Cuda;
}

namespace weft::cuda {

/// What is done to an element of a product before it is stored. The bias has an element a column.
enum class Epilogue : std::uint8_t { None, Relu, Bias, ReluBias };

/// `C = epilogue(alpha · op(A) · op(B) + beta · C)`, all row-major in the device's memory: op(A) of
/// [m, k], op(B) of [k, n], C of [m, n]; `lda`, `ldb`, `ldc` are the distances of rows in elements.
/// With `beta` 0, C may hold anything.
template <class T>
struct Gemm {
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  T alpha = 1;
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  T beta = 0;
  T* c = nullptr;
  std::int64_t ldc = 0;
  Epilogue epilogue = Epilogue::None;
  const T* bias = nullptr;  ///< [n], for the epilogues with a bias
};

template <class T>
constexpr bool has_bias(const Gemm<T>& product) {
  return product.epilogue == Epilogue::Bias || product.epilogue == Epilogue::ReluBias;
}

/// Memory that a product may work in, 256-byte aligned.
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// As much as any product asks for: what NVIDIA recommends for Hopper ("cuBLAS library", 2.1.10).
inline constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

/// Enqueues the product on `cuda.stream()`. Of floats, as `cuda.precision()` says. The algorithm is
/// what cuBLASLt recommends for shape, distances and alignment: asked for once a thread, some tens
/// of microseconds, and remembered, so that a call costs a look-up and the launch, and the same
/// call gives the same bits. With `cuda.tunes_products()` others are tried behind calls that come
/// often, and the fastest is kept: from then on sums may be in another order. A product that works
/// in memory of its own takes it from `cuda.scratch`, so an op that uses scratch itself hands over
/// a part of it as `workspace`. Throws `UsageError` for extents that do not fit, `DeviceError` for
/// what cuBLASLt refuses.
void gemm(Cuda& cuda, const Gemm<float>& product);
void gemm(Cuda& cuda, const Gemm<double>& product);
void gemm(Cuda& cuda, const Gemm<float>& product, Workspace workspace);
void gemm(Cuda& cuda, const Gemm<double>& product, Workspace workspace);

}  // namespace weft::cuda
