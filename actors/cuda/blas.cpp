#include "actors/cuda/blas.hpp"

#include <string>

#include "actors/cuda/check.hpp"
#include "actors/cuda/gemm_plan.hpp"
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
  GemmPlan& plan = gemm_plan(cuda.blas_lt(), gemm_key(cuda, product));
  void* workspace = nullptr;
  if (plan.workspace_bytes > 0) {
    if (given && given->bytes < plan.workspace_bytes)
      throw UsageError("gemm: the workspace has " + std::to_string(given->bytes) +
                       " bytes, and this product needs " + std::to_string(plan.workspace_bytes) +
                       "; kWorkspaceBytes is enough for any");
    workspace = given ? given->data : cuda.scratch(kWorkspaceBytes);
  }
  launch(cuda, plan, product, workspace);
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
