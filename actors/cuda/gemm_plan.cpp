#include "actors/cuda/gemm_plan.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <unordered_map>

#include "actors/cuda/blas.hpp"
#include "actors/cuda/check.hpp"
#include "framework/failure.hpp"

namespace weft::cuda {
namespace {

struct Hash {
  std::size_t operator()(const GemmKey& key) const {
    std::uint64_t hash = 0;
    const auto mix = [&hash](std::uint64_t value) {
      hash = (std::rotl(hash, 5) ^ value) * 0x9e3779b97f4a7c15ull;
    };
    mix(static_cast<std::uint64_t>(key.m) << 32 ^ static_cast<std::uint64_t>(key.n));
    mix(static_cast<std::uint64_t>(key.k));
    mix(static_cast<std::uint64_t>(key.lda) << 40 ^ static_cast<std::uint64_t>(key.ldb) << 20 ^
        static_cast<std::uint64_t>(key.ldc));
    mix(static_cast<std::uint64_t>(key.device) << 48 ^ std::uint64_t{key.alignments} << 32 ^
        std::uint64_t{key.epilogue} << 8 ^ static_cast<std::uint64_t>(key.precision) << 4 ^
        static_cast<std::uint64_t>(key.transpose_a * 8 + key.transpose_b * 4 + key.is_double * 2 +
                                   key.has_beta));
    return hash ^ hash >> 32;
  }
};

cublasComputeType_t compute_type(const GemmKey& key) {
  if (key.is_double) return CUBLAS_COMPUTE_64F;
  switch (key.precision) {
    case Precision::Tf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Precision::Bf16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    case Precision::Fp32:
      break;
  }
  return CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t epilogue_of(const GemmKey& key) {
  switch (static_cast<Epilogue>(key.epilogue)) {
    case Epilogue::Relu:
      return CUBLASLT_EPILOGUE_RELU;
    case Epilogue::Bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::ReluBias:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::None:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

void init_layout(cublasLtMatrixLayoutOpaque_t& layout, const GemmKey& key, std::int64_t rows,
                 std::int64_t columns, std::int64_t distance, bool is_transposed) {
  if (is_transposed) std::swap(rows, columns);
  WEFT_CHECK_CUBLAS(cublasLtMatrixLayoutInit(&layout, key.is_double ? CUDA_R_64F : CUDA_R_32F,
                                             static_cast<std::uint64_t>(rows),
                                             static_cast<std::uint64_t>(columns), distance));
}

template <class Value>
void set(cublasLtMatmulDescOpaque_t& operation, cublasLtMatmulDescAttributes_t attribute,
         const Value& value) {
  WEFT_CHECK_CUBLAS(cublasLtMatmulDescSetAttribute(&operation, attribute, &value, sizeof value));
}

template <class Value>
void set(cublasLtMatmulPreferenceOpaque_t& preference,
         cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  WEFT_CHECK_CUBLAS(
      cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value));
}

std::string describe(const GemmKey& key) {
  return std::string(key.is_double ? "fp64" : "fp32") + " product of " + std::to_string(key.n) +
         " x " + std::to_string(key.k) + " and " + std::to_string(key.k) + " x " +
         std::to_string(key.m) + ", rows " + std::to_string(key.ldb) + ", " +
         std::to_string(key.lda) + " and " + std::to_string(key.ldc) + " elements apart";
}

void choose_algorithm(cublasLtHandle_t handle, GemmPlan& plan) {
  cublasLtMatmulPreferenceOpaque_t preference;
  WEFT_CHECK_CUBLAS(cublasLtMatmulPreferenceInit(&preference));
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  const auto alignment = [&](int operand) {
    return std::uint32_t{1} << (plan.key.alignments >> 4 * operand & 15);
  };
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(0));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(1));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(2));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(2));
  constexpr int kCandidates = 8;
  cublasLtMatmulHeuristicResult_t candidates[kCandidates];
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, &plan.operation, &plan.a, &plan.b, &plan.c, &plan.c,
                                     &preference, kCandidates, candidates, &found);
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found; ++i) {
    if (candidates[i].state != CUBLAS_STATUS_SUCCESS) continue;
    plan.algorithm = candidates[i].algo;
    plan.workspace_bytes = candidates[i].workspaceSize;
    return;
  }
  throw DeviceError("cublasLtMatmulAlgoGetHeuristic: no algorithm for the " + describe(plan.key) +
                    ": " + cublasGetStatusString(status));
}

std::unique_ptr<GemmPlan> make_plan(cublasLtHandle_t handle, const GemmKey& key) {
  auto plan = std::make_unique<GemmPlan>();
  plan->key = key;
  WEFT_CHECK_CUBLAS(cublasLtMatmulDescInit(&plan->operation, compute_type(key),
                                           key.is_double ? CUDA_R_64F : CUDA_R_32F));
  const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(plan->operation, CUBLASLT_MATMUL_DESC_TRANSA, operation(key.transpose_a));
  set(plan->operation, CUBLASLT_MATMUL_DESC_TRANSB, operation(key.transpose_b));
  set(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(key));
  init_layout(plan->a, key, key.m, key.k, key.lda, key.transpose_a);
  init_layout(plan->b, key, key.k, key.n, key.ldb, key.transpose_b);
  init_layout(plan->c, key, key.m, key.n, key.ldc, false);
  choose_algorithm(handle, *plan);
  return plan;
}

// Of this thread, so that no lock is needed and a plan's bias pointer may be set before a launch.
struct Plans {
  std::unordered_map<GemmKey, std::unique_ptr<GemmPlan>, Hash> all;
  GemmPlan* last = nullptr;
};

}  // namespace

std::uint16_t alignment_of(const void* pointer) {
  const auto zeros = std::countr_zero(reinterpret_cast<std::uintptr_t>(pointer) | 256);
  return static_cast<std::uint16_t>(zeros >= 8 ? 8 : std::min(zeros, 4));
}

GemmPlan& gemm_plan(cublasLtHandle_t handle, const GemmKey& key) {
  constexpr std::size_t kMostPlans = 4096;  // 2 MB; programs with ever new shapes do not grow
  thread_local Plans plans;
  if (plans.last && plans.last->key == key) return *plans.last;
  auto found = plans.all.find(key);
  if (found == plans.all.end()) {
    auto plan = make_plan(handle, key);
    if (plans.all.size() >= kMostPlans) {
      plans.last = nullptr;
      plans.all.clear();
    }
    found = plans.all.emplace(key, std::move(plan)).first;
  }
  plans.last = found->second.get();
  return *plans.last;
}

}  // namespace weft::cuda
