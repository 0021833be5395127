#include "actors/cuda/builtin_variants.hpp"

#include <mutex>

#include "actors/collective_step.hpp"
#include "actors/cuda/blas.hpp"
#include "actors/cuda/bundle_graph.hpp"
#include "actors/cuda/device_sum.hpp"
#include "actors/cuda/kernels/elementwise.hpp"
#include "framework/builtin.hpp"
#include "framework/own_kernels.hpp"

namespace weft::cuda {
namespace {

template <class T>
void matmul(Cuda& cuda, In<T> a, In<T> b, Out<T> c) {
  Gemm<T> product;
  product.m = a.dim(0);
  product.k = a.dim(1);
  product.n = b.dim(1);
  product.a = a.data();
  product.lda = product.k;
  product.b = b.data();
  product.ldb = product.n;
  product.c = c.data();
  product.ldc = product.n;
  gemm(cuda, product);
}

void run_local_copy(Cuda& cuda, Op& op) {
  const Replica& from = *op.args()[0].replica();
  copy(cuda.stream(), op.args()[1].replica()->data, from.data, from.bytes);
}

void run_row_copy(Cuda& cuda, Op& op) {
  const auto& range = *static_cast<const ByteRange*>(op.scalars());
  const char* from = static_cast<const char*>(op.args()[0].replica()->data) + range.from_offset;
  char* to = static_cast<char*>(op.args()[1].replica()->data) + range.to_offset;
  if (range.bytes > 0) copy(cuda.stream(), to, from, range.bytes);
}

void sum_partials(Cuda& cuda, Op& op) {
  const Replica& into = *op.args()[0].replica();
  const TensorState& tensor = *into.tensor;
  if (into.bytes == 0) return;
  const DeviceSum sum = device_sum_of(tensor.sum_partial, tensor.element_bytes, "sum_partials");
  std::size_t next = 1;
  if (op.args()[0].access() == Access::Out)
    copy(cuda.stream(), into.data, op.args()[next++].replica()->data, into.bytes);
  for (; next < op.arg_count; ++next)
    sum(cuda.stream(), into.data, op.args()[next].replica()->data,
        into.bytes / tensor.element_bytes);
}

void run_collective_step(Cuda& cuda, Op& op) {
  const auto& step = *static_cast<const CollectiveLocalStep*>(op.scalars());
  if (step.bytes == 0) return;
  char* into = static_cast<char*>(op.args()[0].replica()->data) + step.into_offset;
  const char* from = static_cast<const char*>(op.args()[1].replica()->data) + step.from_offset;
  if (step.sum)
    device_sum_of(step.sum, step.element_bytes, "collective")(cuda.stream(), into, from,
                                                              step.bytes / step.element_bytes);
  else
    copy(cuda.stream(), into, from, step.bytes);
}

void add_all() {
  kernels::matmul().cuda(matmul<float>);
  kernels::matmul_f64().cuda(matmul<double>);
  kernels::fill().cuda([](Cuda& cuda, float value, Out<float> x) {
    fill(cuda.stream(), x.data(), x.size(), value);
  });
  kernels::uniform().cuda([](Cuda& cuda, std::uint64_t seed, float low, float high, Out<float> x) {
    uniform(cuda.stream(), x.data(), x.size(), seed, low, high);
  });
  bundle_kernel().cuda = run_bundle;
  local_copy_kernel().cuda = run_local_copy;
  row_copy_kernel().cuda = run_row_copy;
  sum_partials_kernel().cuda = sum_partials;
  collective_step_kernel().cuda = run_collective_step;
}

}  // namespace

void add_cuda_variants() {
  static std::once_flag once;
  std::call_once(once, add_all);
}

}  // namespace weft::cuda
