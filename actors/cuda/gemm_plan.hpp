#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/cuda/blas.hpp"
#include "framework/cuda.hpp"

namespace weft::cuda {

class GemmTrials;

/// All that cuBLASLt's choice of an algorithm depends on. Column-major, as cuBLAS counts: the
/// transposed product, so that row-major C = A·B is cᵀ = bᵀ·aᵀ.
struct GemmKey {
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  std::int32_t device = 0;
  bool transpose_a = false, transpose_b = false, is_double = false;
  Precision precision = Precision::Fp32;
  std::uint8_t epilogue = 0;     // `Epilogue`
  std::uint8_t has_beta = 0;     // beta is not 0
  std::uint16_t alignments = 0;  // of a, b, c and the bias: four bits each, log2 of bytes

  bool operator==(const GemmKey&) const = default;
};

/// The key of a product on the device.
GemmKey gemm_key(const Cuda& cuda, const Gemm<float>& product);
GemmKey gemm_key(const Cuda& cuda, const Gemm<double>& product);

/// A product ready to be launched: descriptors and the chosen algorithm. Plain memory.
struct GemmPlan {
  GemmKey key;
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{}, b{}, c{};
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace_bytes = 0;
  bool has_epilogue = true;  // false: cuBLASLt has no such epilogue here, a kernel follows
};

/// Up to `most` plans for `key`, the one that cuBLASLt recommends first; none if it has no
/// algorithm.
std::vector<GemmPlan> gemm_candidates(cublasLtHandle_t handle, const GemmKey& key, int most);

/// Enqueues `product` as `plan` says. `workspace` has `plan.workspace_bytes`. Throws `DeviceError`.
void launch(Cuda& cuda, GemmPlan& plan, const Gemm<float>& product, void* workspace);
void launch(Cuda& cuda, GemmPlan& plan, const Gemm<double>& product, void* workspace);

/// Up to `most` plans for `key`, the one that is used unless another is faster first. They may do
/// the epilogue apart. Throws `DeviceError` if there is none.
std::vector<GemmPlan> usable_plans(cublasLtHandle_t handle, const GemmKey& key, int most);

/// What a thread knows of a key.
struct RememberedGemm {
  explicit RememberedGemm(const GemmPlan& recommended);
  RememberedGemm(const RememberedGemm&) = delete;
  RememberedGemm& operator=(const RememberedGemm&) = delete;
  ~RememberedGemm();

  GemmPlan plan;
  std::uint32_t calls = 0;             ///< counted until it is settled, where products are tuned
  bool is_settled = false;             ///< the plan stays
  std::unique_ptr<GemmTrials> trials;  ///< while others are tried
};

/// The plan for `key`, made at the thread's first call with it. Valid until the thread's next call.
/// Throws `DeviceError`.
RememberedGemm& gemm_plan(cublasLtHandle_t handle, const GemmKey& key);

/// Products that this thread has launched while it was still being found out which algorithm is the
/// fastest for them, or before. What captures work that launches some should wait a little.
std::uint64_t& undecided_products();

}  // namespace weft::cuda
