#include <vector>

#include "actors/runtime.hpp"
#include "apps/bench/executor.hpp"
#include "apps/bench/measurement.hpp"
#include "apps/bench/statistics.hpp"

namespace weft::bench {
namespace {

// Kernels take 1 ms, and so does a copy of what one of them writes.
constexpr std::int64_t kElements = 250'000;
constexpr double kLinkBytesPerSecond = 1e9;

RuntimeOptions two_gpus() {
  RuntimeOptions options;
  options.gpus = GpuMode::Emulated;
  options.emulated_gpus = 2;
  options.emulated = EmulatedOptions{};
  options.emulated->launch = std::chrono::milliseconds(1);
  options.emulated->compute_lanes = 1;
  options.emulated->link_bytes_per_second = kLinkBytesPerSecond;
  options.serial = false;
  return options;
}

template <class Work>
double median_seconds(std::uint32_t repeats, const Work& work) {
  std::vector<double> seconds;
  work();
  for (std::uint32_t i = 0; i < repeats; ++i) {
    const Stopwatch watch;
    work();
    seconds.push_back(watch.seconds());
  }
  return median(seconds);
}

}  // namespace

Figures measure_overlap(const Measurement& wanted) {
  Runtime runtime(two_gpus());
  const auto kernel = Kernel("millisecond").cpu([](Cpu&, Out<float>) {});
  const Device gpus[] = {runtime.gpu(0), runtime.gpu(1)};
  std::vector<Tensor<float>> results[2];
  for (std::size_t g = 0; g < 2; ++g)
    for (std::uint32_t i = 0; i < wanted.ops; ++i)
      results[g].push_back(gpus[g].tensor<float>({kElements}));

  const auto run_on = [&](std::size_t g) {
    for (const auto& result : results[g]) gpus[g].submit(kernel, out(result));
  };
  const auto copy = [&] {
    std::vector<HostArray<float>> arrays;
    for (const auto& result : results[0]) arrays.push_back(result.to_host());
    when_all(arrays).wait();
  };
  const auto timed = [&](const auto& work) {
    return median_seconds(wanted.repeats, [&] {
      work();
      runtime.wait_idle();
    });
  };
  const double first = timed([&] { run_on(0); }), second = timed([&] { run_on(1); });
  const double both = timed([&] {
    run_on(0);
    run_on(1);
  });
  const double copies = timed(copy);
  const double run_and_copy = timed([&] {
    std::vector<HostArray<float>> arrays;
    for (const auto& result : results[0]) {
      gpus[0].submit(kernel, out(result));
      arrays.push_back(result.to_host());
    }
    when_all(arrays).wait();
  });
  return {{"longer_one", {std::max(first, second)}},
          {"both_at_once", {both}},
          {"run", {first}},
          {"copy", {copies}},
          {"run_and_copy", {run_and_copy}}};
}

}  // namespace weft::bench
