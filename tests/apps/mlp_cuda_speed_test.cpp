// How long the parts of the perceptron's training step take on a GPU without a runtime: what the
// demo can reach there. Hidden, run by name: mlp_cuda_test "[speed]"
#include <algorithm>
#include <cstdio>

#include "actors/cuda/gemm_plan.hpp"
#include "actors/cuda/variant_calls.hpp"
#include "apps/mlp/cuda_variants.hpp"
#include "apps/mlp/data_kernels.hpp"
#include "apps/mlp/layer_kernels.hpp"
#include "apps/mlp/layout.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

namespace weft::mlp {
namespace {

using test::DeviceArray;
using test::PlainCuda;

template <class T>
DeviceArray<T> zeros(std::int64_t count) {
  return DeviceArray<T>(std::vector<T>(static_cast<std::size_t>(count)));
}

// The step's product and what cuBLASLt offers for it besides what it recommends.
void print_candidates(PlainCuda& cuda, const char* name, const cuda::Gemm<float>& product) {
  auto plans = cuda::gemm_candidates(cuda.blas_lt(), cuda::gemm_key(cuda, product), 64);
  void* workspace = cuda.scratch(cuda::kWorkspaceBytes);
  std::vector<double> times;
  for (auto& plan : plans)
    times.push_back(
        cuda.device_microseconds([&] { cuda::launch(cuda, plan, product, workspace); }));
  const auto best = std::min_element(times.begin(), times.end());
  std::printf("  %-22s %8.2f us recommended, %8.2f the best of %zu (number %td), host %.2f\n", name,
              times[0], *best, times.size(), best - times.begin(),
              cuda.host_microseconds([&] { cuda::gemm(cuda, product); }));
}

void measure(PlainCuda& cuda, std::int64_t hidden, std::int64_t batch) {
  constexpr std::int64_t kInputs = 784, kClasses = 10, kSamples = 60'000;
  const std::int64_t width = row_with_one(kInputs), wide = row_with_one(hidden);
  const auto x = zeros<float>(batch * width), w1 = zeros<float>(width * hidden),
             w2 = zeros<float>(wide * kClasses), h = zeros<float>(batch * wide),
             dz = zeros<float>(batch * kClasses), dh = zeros<float>(batch * hidden),
             offsets = zeros<float>(kInputs), none = zeros<float>(0);
  const auto y = zeros<std::uint8_t>(batch),
             records = zeros<std::uint8_t>(batch * record_bytes(784));
  const auto score = zeros<double>(2);
  TensorState state_x, state_y, state_w1, state_w2, state_h, state_dz, state_dh, state_none,
      state_offsets, state_records, state_score;
  const auto replica = [](TensorState& state, const Shape& shape, void* data) {
    state.shape = shape;
    return Replica{.data = data, .tensor = &state};
  };
  Replica rx = replica(state_x, {batch, width}, x.data()), ry = replica(state_y, {batch}, y.data()),
          rw1 = replica(state_w1, {width, hidden}, w1.data()),
          rw2 = replica(state_w2, {wide, kClasses}, w2.data()),
          rh = replica(state_h, {batch, wide}, h.data()),
          rdz = replica(state_dz, {batch, kClasses}, dz.data()),
          rdh = replica(state_dh, {batch, hidden}, dh.data()),
          rnone = replica(state_none, {0}, none.data()),
          roffsets = replica(state_offsets, {kInputs}, offsets.data()),
          rrecords = replica(state_records, {batch, record_bytes(784)}, records.data()),
          rscore = replica(state_score, {2}, score.data());
  const auto in = [](Replica& r) { return ArgSlot(&r, Access::In); };
  const auto out = [](Replica& r) { return ArgSlot(&r, Access::Out); };

  const KernelCode &forward = *kernels::forward().code(), &descend = *kernels::descend().code(),
                   &normalise = *kernels::normalise().code();
  const test::LooseOp run_forward(
      forward, {in(rx), in(ry), in(rw1), in(rw2), out(rh), out(rdz), out(rdh), out(rscore)}, 8);
  new ((*run_forward).scalars()) std::tuple<std::uint64_t>(static_cast<std::uint64_t>(batch));
  const test::LooseOp run_second(descend, {in(rh), in(rdz), out(rw2), out(rnone)}, 8);
  new ((*run_second).scalars()) std::tuple<float, float>(0.1f, 0.0f);
  const test::LooseOp run_first(descend, {in(rx), in(rdh), out(rw1), out(rnone)}, 8);
  new ((*run_first).scalars()) std::tuple<float, float>(0.1f, 0.0f);
  const test::LooseOp run_normalise(normalise, {in(roffsets), in(rrecords), out(rx), out(ry)},
                                    sizeof(std::tuple<std::uint64_t, float>));
  new ((*run_normalise).scalars()) std::tuple<std::uint64_t, float>(0, 0.01f);

  std::printf("784-%d-10, batch %d\n", int(hidden), int(batch));
  const auto part = [&](const char* name, const KernelCode& code, const test::LooseOp& op) {
    const auto enqueue = [&] { code.cuda(cuda, *op); };
    std::printf("  %-22s %8.2f us, host %.2f\n", name, cuda.device_microseconds(enqueue),
                cuda.host_microseconds(enqueue));
  };
  part("normalise", normalise, run_normalise);
  part("forward", forward, run_forward);
  part("descend, layer 2", descend, run_second);
  part("descend, layer 1", descend, run_first);
  const auto step = [&] {
    forward.cuda(cuda, *run_forward);
    descend.cuda(cuda, *run_second);
    descend.cuda(cuda, *run_first);
  };
  const double device = cuda.device_microseconds(step);
  std::printf("  %-22s %8.2f us, host %.2f: %.2f ms an epoch of %d steps\n", "the step", device,
              cuda.host_microseconds(step), 1e-3 * device * double(kSamples / batch),
              int(kSamples / batch));

  cuda::Gemm<float> product;
  product.m = batch;
  product.k = width;
  product.n = hidden;
  product.a = x.data();
  product.lda = width;
  product.b = w1.data();
  product.ldb = hidden;
  product.c = h.data();
  product.ldc = wide;
  product.epilogue = cuda::Epilogue::Relu;
  print_candidates(cuda, "product forward", product);
  cuda::Gemm<float> back;
  back.transpose_a = true;
  back.m = width;
  back.k = batch;
  back.n = hidden;
  back.alpha = -0.1f;
  back.beta = 1;
  back.a = x.data();
  back.lda = width;
  back.b = dh.data();
  back.ldb = hidden;
  back.c = w1.data();
  back.ldc = hidden;
  print_candidates(cuda, "product of the gradient", back);
}

TEST_CASE("the parts of a training step, timed", "[.speed][gpu]") {
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  PlainCuda cuda;
  cuda.keep_scratch();
  for (const auto precision : {Precision::Fp32, Precision::Tf32}) {
    cuda.set_precision(precision);
    std::printf("%s\n", precision == Precision::Fp32 ? "fp32" : "TF32");
    for (const auto& [hidden, batch] : {std::pair{256, 256}, {256, 2048}, {4096, 4096}})
      measure(cuda, hidden, batch);
  }
}

}  // namespace
}  // namespace weft::mlp
