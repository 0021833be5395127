#include "actors/cuda/blas.hpp"

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "actors/cuda/check.hpp"
#include "actors/cuda/gemm_plan.hpp"
#include "actors/cuda/gemm_trials.hpp"
#include "actors/cuda/kernels/matrix.hpp"
#include "framework/failure.hpp"

namespace weft::cuda {
namespace {

void refuse(const char* what, std::int64_t is, std::int64_t wanted) {
  throw UsageError(std::string("gemm: ") + what + " is " + std::to_string(is) +
                   ", and must be at least " + std::to_string(wanted));
}

template <class T>
void check(const Gemm<T>& product) {
  const auto at_least = [](const char* what, std::int64_t is, std::int64_t wanted) {
    if (is < wanted) refuse(what, is, wanted);
  };
  at_least("m", product.m, 0);
  at_least("n", product.n, 0);
  at_least("k", product.k, 0);
  at_least("lda", product.lda, product.transpose_a ? product.m : product.k);
  at_least("ldb", product.ldb, product.transpose_b ? product.k : product.n);
  at_least("ldc", product.ldc, product.n);
  if (has_bias(product) && !product.bias) throw UsageError("gemm: the epilogue needs a bias");
}

bool is_captured(CUstream_st* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  WEFT_CHECK_CUDA(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

// Looks for a faster algorithm for what comes often and is large enough.
template <class T>
void tune(Cuda& cuda, RememberedGemm& known, const Gemm<T>& product) {
  constexpr std::uint32_t kOften = 64;
  constexpr int kCandidates = 32;
  if (!GemmTrials::are_worth_it(known.plan.key)) {
    known.is_settled = true;
    return;
  }
  if (is_captured(cuda.stream())) return;
  ++undecided_products();
  if (++known.calls < kOften) return;
  if (!known.trials)
    known.trials =
        std::make_unique<GemmTrials>(usable_plans(cuda.blas_lt(), known.plan.key, kCandidates));
  known.trials->go_on(cuda, product);
  if (!known.trials->are_decided()) return;
  known.plan = known.trials->winner();
  known.is_settled = true;
  known.trials.reset();
}

template <class T>
void run(Cuda& cuda, const Gemm<T>& product, const Workspace* given) {
  check(product);
  if (product.m == 0 || product.n == 0) return;
  if (product.k == 0) {  // nothing is added up; cuBLASLt knows no empty matrices
    scale_rows(cuda.stream(), product.c, product.m, product.n, product.ldc, product.beta,
               has_bias(product) ? product.bias : nullptr,
               product.epilogue == Epilogue::Relu || product.epilogue == Epilogue::ReluBias);
    return;
  }
  RememberedGemm& known = gemm_plan(cuda.blas_lt(), gemm_key(cuda, product));
  GemmPlan& plan = known.plan;
  void* workspace = nullptr;
  if (plan.workspace_bytes > 0) {
    if (given && given->bytes < plan.workspace_bytes)
      throw UsageError("gemm: the workspace has " + std::to_string(given->bytes) +
                       " bytes, and this product needs " + std::to_string(plan.workspace_bytes) +
                       "; kWorkspaceBytes is enough for any");
    workspace = given ? given->data : cuda.scratch(kWorkspaceBytes);
  }
  launch(cuda, plan, product, workspace);
  // An op that hands over a workspace uses the rest of its scratch memory itself.
  if (!known.is_settled && !given && cuda.tunes_products()) tune(cuda, known, product);
}

}  // namespace

void gemm(Cuda& cuda, const Gemm<float>& product) {
  run(cuda, product, nullptr);
}
void gemm(Cuda& cuda, const Gemm<double>& product) {
  run(cuda, product, nullptr);
}
void gemm(Cuda& cuda, const Gemm<float>& product, Workspace workspace) {
  run(cuda, product, &workspace);
}
void gemm(Cuda& cuda, const Gemm<double>& product, Workspace workspace) {
  run(cuda, product, &workspace);
}

}  // namespace weft::cuda
