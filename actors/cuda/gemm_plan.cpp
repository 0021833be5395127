#include "actors/cuda/gemm_plan.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "actors/cuda/blas.hpp"
#include "actors/cuda/check.hpp"
#include "actors/cuda/gemm_trials.hpp"
#include "actors/cuda/kernels/matrix.hpp"
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

GemmPlan describe_plan(const GemmKey& key) {
  GemmPlan plan;
  plan.key = key;
  WEFT_CHECK_CUBLAS(cublasLtMatmulDescInit(&plan.operation, compute_type(key),
                                           key.is_double ? CUDA_R_64F : CUDA_R_32F));
  const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, operation(key.transpose_a));
  set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, operation(key.transpose_b));
  set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(key));
  init_layout(plan.a, key, key.m, key.k, key.lda, key.transpose_a);
  init_layout(plan.b, key, key.k, key.n, key.ldb, key.transpose_b);
  init_layout(plan.c, key, key.m, key.n, key.ldc, false);
  return plan;
}

// log2 of 1, 2, 4, 8, 16 or 256 bytes.
std::uint16_t alignment_of(const void* pointer) {
  const auto zeros = std::countr_zero(reinterpret_cast<std::uintptr_t>(pointer) | 256);
  return static_cast<std::uint16_t>(zeros >= 8 ? 8 : std::min(zeros, 4));
}

template <class T>
GemmKey make_key(const Cuda& cuda, const Gemm<T>& product) {
  GemmKey key;
  key.m = product.n;
  key.n = product.m;
  key.k = product.k;
  key.lda = product.ldb;
  key.ldb = product.lda;
  key.ldc = product.ldc;
  key.device = cuda.device();
  key.transpose_a = product.transpose_b;
  key.transpose_b = product.transpose_a;
  key.is_double = std::is_same_v<T, double>;
  key.precision = key.is_double ? Precision::Fp32 : cuda.precision();
  key.epilogue = static_cast<std::uint8_t>(product.epilogue);
  key.has_beta = product.beta != 0;
  key.alignments = static_cast<std::uint16_t>(
      alignment_of(product.b) | alignment_of(product.a) << 4 | alignment_of(product.c) << 8 |
      (has_bias(product) ? alignment_of(product.bias) : 0) << 12);
  return key;
}

template <class T>
void launch_plan(Cuda& cuda, GemmPlan& plan, const Gemm<T>& product, void* workspace) {
  if (has_bias(product) && plan.has_epilogue)
    set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
  WEFT_CHECK_CUBLAS(cublasLtMatmul(cuda.blas_lt(), &plan.operation, &product.alpha, product.b,
                                   &plan.a, product.a, &plan.b, &product.beta, product.c, &plan.c,
                                   product.c, &plan.c, &plan.algorithm, workspace,
                                   plan.workspace_bytes, cuda.stream()));
  if (plan.has_epilogue) return;
  scale_rows(cuda.stream(), product.c, product.m, product.n, product.ldc, T{1},
             has_bias(product) ? product.bias : nullptr, product.epilogue != Epilogue::Bias);
}

// Of this thread, so that no lock is needed and a plan's bias pointer may be set before a launch.
struct Plans {
  std::unordered_map<GemmKey, std::unique_ptr<RememberedGemm>, Hash> all;
  RememberedGemm* last = nullptr;
};

}  // namespace

GemmKey gemm_key(const Cuda& cuda, const Gemm<float>& product) {
  return make_key(cuda, product);
}
GemmKey gemm_key(const Cuda& cuda, const Gemm<double>& product) {
  return make_key(cuda, product);
}

void launch(Cuda& cuda, GemmPlan& plan, const Gemm<float>& product, void* workspace) {
  launch_plan(cuda, plan, product, workspace);
}
void launch(Cuda& cuda, GemmPlan& plan, const Gemm<double>& product, void* workspace) {
  launch_plan(cuda, plan, product, workspace);
}

std::vector<GemmPlan> gemm_candidates(cublasLtHandle_t handle, const GemmKey& key, int most) {
  GemmPlan plan = describe_plan(key);
  cublasLtMatmulPreferenceOpaque_t preference;
  WEFT_CHECK_CUBLAS(cublasLtMatmulPreferenceInit(&preference));
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  const auto alignment = [&](int operand) {
    return std::uint32_t{1} << (key.alignments >> 4 * operand & 15);
  };
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(0));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(1));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(2));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(2));
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, &plan.operation, &plan.a, &plan.b, &plan.c, &plan.c,
                                     &preference, most, results.data(), &found);
  std::vector<GemmPlan> plans;
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found; ++i) {
    const auto& result = results[static_cast<std::size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    plan.algorithm = result.algo;
    plan.workspace_bytes = result.workspaceSize;
    plans.push_back(plan);
  }
  return plans;
}

std::vector<GemmPlan> usable_plans(cublasLtHandle_t handle, const GemmKey& key, int most) {
  const bool is_plain = key.epilogue == static_cast<std::uint8_t>(Epilogue::None);
  const bool has_odd_bias = key.alignments >> 12 != 0 && key.alignments >> 12 < 4;
  if (!has_odd_bias) {
    auto plans = gemm_candidates(handle, key, most);
    if (!plans.empty()) return plans;
  }
  GemmKey without = key;
  without.epilogue = static_cast<std::uint8_t>(Epilogue::None);
  without.alignments &= 0xfff;
  auto plans = is_plain ? std::vector<GemmPlan>() : gemm_candidates(handle, without, most);
  if (plans.empty())
    throw DeviceError("cublasLtMatmulAlgoGetHeuristic: no algorithm for the " + describe(key));
  for (GemmPlan& plan : plans) {
    plan.key = key;
    plan.has_epilogue = false;
  }
  return plans;
}

RememberedGemm::RememberedGemm(const GemmPlan& recommended) : plan(recommended) {}
RememberedGemm::~RememberedGemm() = default;

RememberedGemm& gemm_plan(cublasLtHandle_t handle, const GemmKey& key) {
  constexpr int kCandidates = 8;            // some may turn out not to be for this device
  constexpr std::size_t kMostPlans = 4096;  // 2 MB; programs with ever new shapes do not grow
  thread_local Plans plans;
  if (plans.last && plans.last->plan.key == key) return *plans.last;
  auto found = plans.all.find(key);
  if (found == plans.all.end()) {
    auto made = std::make_unique<RememberedGemm>(usable_plans(handle, key, kCandidates).front());
    if (plans.all.size() >= kMostPlans) {
      plans.last = nullptr;
      plans.all.clear();
    }
    found = plans.all.emplace(key, std::move(made)).first;
  }
  plans.last = found->second.get();
  return *plans.last;
}

std::uint64_t& undecided_products() {
  thread_local std::uint64_t count = 0;
  return count;
}

}  // namespace weft::cuda
