#include "apps/calibrate/sizes.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <weft/weft.hpp>

#include "apps/mlp/layer_kernels.hpp"
#include "framework/trace.hpp"

namespace weft::calibrate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLeastSide = 64, kMostSide = 32'768;
constexpr std::int64_t kLeastElements = 1 << 10, kMostElements = 1 << 28;
constexpr std::size_t kShareOfMemory = 64;  // a tensor takes at most one part of so many

/// One op of a size, waited for.
using Once = std::function<void()>;

// Whether the next size is worth a try. Only what is timed is recorded.
bool run_size(Tracer& tracer, const Effort& effort, const Once& once) {
  tracer.set_recording(false);
  once();
  double longest = 0;
  tracer.set_recording(true);
  for (std::uint32_t repeat = 0; repeat < effort.repeats; ++repeat) {
    const auto start = Clock::now();
    once();
    longest = std::max(longest, std::chrono::duration<double>(Clock::now() - start).count());
    if (longest > effort.most_seconds && repeat >= 2) break;
  }
  return longest <= effort.most_seconds;
}

// Sizes one after the other, until one is too long or too large.
void run_sizes(const Runtime& runtime, const Effort& effort, const std::vector<std::int64_t>& sizes,
               const std::function<Once(std::int64_t)>& at) {
  Tracer& tracer = *runtime.tracer();
  for (const std::int64_t size : sizes) {
    bool goes_on = false;
    try {
      tracer.set_recording(false);
      const Once once = at(size);
      runtime.wait_idle();
      goes_on = run_size(tracer, effort, once);
    } catch (const OpError&) {
      if (size == sizes.front()) throw;  // what fits of the others was measured
    }
    runtime.wait_idle();
    if (!goes_on) break;
  }
  tracer.set_recording(true);
}

std::int64_t most_elements(const Runtime& runtime, const Device& device) {
  const std::size_t bytes = runtime.machine().memories[device.place().memory].bytes;
  if (bytes == 0) return kMostElements;
  return std::min<std::int64_t>(kMostElements,
                                static_cast<std::int64_t>(bytes / kShareOfMemory / sizeof(float)));
}

template <class T>
void run_products_of(const Runtime& runtime, const Device& device, const Effort& effort,
                     const Kernel<In<T>, In<T>, Out<T>>& product) {
  std::vector<std::int64_t> sides;
  const std::int64_t most = 4 * most_elements(runtime, device);
  for (std::int64_t n = kLeastSide; n <= kMostSide && n * n <= most; n *= 2) {
    sides.push_back(n);
    if (n >= 512) sides.push_back(n + n / 2);
  }
  run_sizes(runtime, effort, sides, [&](std::int64_t n) -> Once {
    const std::vector<T> values(static_cast<std::size_t>(n * n), T{0.5});
    const auto x = runtime.from_host(values, {n, n});
    const auto y = device.tensor<T>({n, n});
    return [=, &product] { device.submit(product, in(x), in(x), out(y)).wait(); };
  });
}

}  // namespace

void run_products(const Runtime& runtime, const Device& device, const Effort& effort, bool fp64) {
  runtime.tracer()->clear();
  if (fp64)
    run_products_of<double>(runtime, device, effort, kernels::matmul_f64());
  else
    run_products_of<float>(runtime, device, effort, kernels::matmul());
}

void run_streams(const Runtime& runtime, const Device& device, const Effort& effort) {
  runtime.tracer()->clear();
  std::vector<std::int64_t> sizes;
  const std::int64_t most = most_elements(runtime, device);
  for (std::int64_t n = kLeastElements; n <= most; n *= 4) sizes.push_back(n);
  run_sizes(runtime, effort, sizes, [&](std::int64_t n) -> Once {
    const auto x = runtime.zeros({n}, device);
    return [=] { device.submit(kernels::fill(), 1.0f, out(x)).wait(); };
  });
  constexpr std::int64_t kRow = 1024;  // of the weights
  run_sizes(runtime, effort, sizes, [&](std::int64_t n) -> Once {
    const Shape shape{n / kRow, kRow};
    const auto g = runtime.zeros(shape, device), w = runtime.zeros(shape, device),
               v = runtime.zeros(shape, device);
    return [=] {
      device.submit(mlp::kernels::update(), 0.01f, 0.9f, std::int64_t{0}, in(g), inout(w), inout(v))
          .wait();
    };
  });
}

}  // namespace weft::calibrate
