// Run times of ops on CUDA devices, as the placer learns them: on a stand-in for CUDA's runtime.
#include "actors/runtime.hpp"
#include "framework/fabric.hpp"
#include "framework/failure.hpp"
#include "framework/placer.hpp"
#include "framework/run_sampler.hpp"
#include "support/catch.hpp"
#include "tests/actors/cuda/fake_variants.hpp"
#include "tests/actors/cuda/through_host.hpp"

namespace weft::test {
namespace {

RuntimeOptions cuda_options() {
  REQUIRE(runs_on_fake_cuda());
  RuntimeOptions options;
  options.gpus = GpuMode::Cuda;
  options.run_costs = "";
  return options;
}

auto kernel_named(const char* name) {
  return on_all(Kernel(name)
                    .cpu([](Cpu&, InOut<float> x) {
                      for (float& value : x) value += 1;
                    })
                    .cost([](InOut<float> x) {
                      return Cost{static_cast<double>(x.size()), 0};
                    }));
}

// Runs that were told to the placer, of all models.
std::uint64_t runs_of(const Runtime& runtime, const KernelCode& code, double* seconds = nullptr) {
  Placer* const placer = runtime.fabric().placer.load();
  if (!placer) return 0;
  std::uint64_t runs = 0;
  for (std::size_t m = 0; m < placer->costs().models().size(); ++m)
    for (const auto& point : placer->costs().of(code, m).points()) {
      runs += point.runs;
      if (seconds) *seconds = point.seconds;
    }
  return runs;
}

template <class K>
void run(const Device& gpu, const K& kernel, const Tensor<float>& x, std::uint64_t times) {
  for (std::uint64_t i = 0; i < times; ++i) gpu.submit(kernel, inout(x));
  x.future().wait();
}

TEST_CASE("a few runs of each kernel and size are told to the placer, then one in many") {
  const auto kernel = kernel_named("sampled");
  const Runtime runtime(cuda_options());
  const Device gpu = runtime.gpu(0);
  const auto small = runtime.zeros({64}, gpu), large = runtime.zeros({4096}, gpu);

  run(gpu, kernel, small, 100);
  CHECK(runs_of(runtime, *kernel.code()) == 0);  // nobody has asked for anywhere

  (void)runtime.anywhere();
  constexpr std::uint64_t kFirst = RunSampler::kFirst, kOneIn = RunSampler::kOneIn;
  run(gpu, kernel, small, 1 + kFirst);
  CHECK(runs_of(runtime, *kernel.code()) == kFirst);
  run(gpu, kernel, small, 10 * kOneIn);
  CHECK(runs_of(runtime, *kernel.code()) == kFirst + 10);
  run(gpu, kernel, large, 1 + kFirst);
  double seconds = 0;
  CHECK(runs_of(runtime, *kernel.code(), &seconds) == 2 * kFirst + 10);
  CHECK(seconds > 0);
}

TEST_CASE("an op that fails tells no time") {
  const auto kernel = thrower_on_all(
      Kernel("failing").cpu([](Cpu&, InOut<float>) { throw std::runtime_error("on purpose"); }));
  const auto follower = kernel_named("behind it");
  const Runtime runtime(cuda_options());
  (void)runtime.anywhere();
  for (int i = 0; i < 8; ++i) {
    const auto x = runtime.zeros({64}, runtime.gpu(0));
    runtime.gpu(0).submit(kernel, inout(x));
    CHECK_THROWS_AS(runtime.gpu(0).submit(follower, inout(x)).wait(), OpError);
  }
  CHECK(runs_of(runtime, *follower.code()) == 0);
  CHECK(runs_of(runtime, *kernel.code()) == 0);
}

TEST_CASE("times are told while ops are traced too") {
  const auto kernel = kernel_named("traced");
  RuntimeOptions options = cuda_options();
  options.trace = true;
  const Runtime runtime(options);
  (void)runtime.anywhere();
  const auto x = runtime.zeros({64}, runtime.gpu(0));
  run(runtime.gpu(0), kernel, x, 1 + RunSampler::kFirst);
  CHECK(runs_of(runtime, *kernel.code()) == RunSampler::kFirst);
}

}  // namespace
}  // namespace weft::test
