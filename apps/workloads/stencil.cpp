// A 2-D five-point stencil: each device has a strip of rows of an n x n grid and gets the nearest
// row of each neighbour in every step. The border stays zero.
#include <algorithm>
#include <cmath>

#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/stencil_kernels.hpp"

namespace weft::workloads {
namespace {

struct Strip {
  Device device;
  std::int64_t first, rows;
  Tensor<float> values, top, bottom;
};

std::vector<Strip> make_strips(const std::vector<Device>& devices, std::int64_t n) {
  const auto count = static_cast<std::int64_t>(devices.size());
  if (n < count)
    throw std::invalid_argument("stencil: n = " + std::to_string(n) + " has no row for each of " +
                                std::to_string(count) + " devices");
  std::vector<Strip> strips;
  for (std::int64_t d = 0; d < count; ++d) {
    const std::int64_t first = n * d / count, rows = n * (d + 1) / count - first;
    const Device& device = devices[static_cast<std::size_t>(d)];
    Strip strip{device, first, rows, device.tensor<float>({rows, n}), {}, {}};
    device.submit(fill_strip(), first, out(strip.values));
    strips.push_back(std::move(strip));
  }
  return strips;
}

void step(std::vector<Strip>& strips, const Tensor<float>& border, std::int64_t n, Counted& ops) {
  for (Strip& strip : strips) {
    strip.top = strip.device.tensor<float>({n});
    strip.bottom = strip.device.tensor<float>({n});
    ops.submit(strip.device, edges(), in(strip.values), out(strip.top), out(strip.bottom));
  }
  for (std::size_t d = 0; d < strips.size(); ++d) {
    const auto& above = d > 0 ? strips[d - 1].bottom : border;
    const auto& below = d + 1 < strips.size() ? strips[d + 1].top : border;
    auto next = strips[d].device.tensor<float>({strips[d].rows, n});
    ops.submit(strips[d].device, relax(), in(strips[d].values), in(above), in(below), out(next));
    strips[d].values = std::move(next);
  }
}

/// Two steps as a plan, so that the grid ends where it began: each strip goes to another tensor and
/// back. And one step, for the last of an odd number.
class RecordedSteps {
 public:
  /// Recording runs a step each; then the strips are filled anew.
  RecordedSteps(const Runtime& runtime, std::vector<Strip>& strips, const Tensor<float>& border,
                std::int64_t n)
      : strips_(strips), border_(border) {
    for (Strip& strip : strips_) {
      strip.top = strip.device.tensor<float>({n});
      strip.bottom = strip.device.tensor<float>({n});
      there_.push_back(strip.device.tensor<float>({strip.rows, n}));
    }
    one_ = runtime.record([&] { step_over(false); });
    two_ = runtime.record([&] {
      step_over(false);
      step_over(true);
    });
    for (Strip& strip : strips_) strip.device.submit(fill_strip(), strip.first, out(strip.values));
  }

  /// Takes `steps` steps, waits for them and returns how many ops they were.
  std::uint64_t replay(std::int64_t steps) {
    for (std::int64_t s = 0; s + 2 <= steps; s += 2) last_ = two_.replay();
    if (steps % 2 == 1) last_ = one_.replay();
    last_.wait();
    if (steps % 2 == 1)
      for (std::size_t d = 0; d < strips_.size(); ++d) std::swap(strips_[d].values, there_[d]);
    return 2 * strips_.size() * static_cast<std::uint64_t>(steps);
  }

 private:
  void step_over(bool is_back) {
    const auto from = [&](std::size_t d) { return is_back ? there_[d] : strips_[d].values; };
    const auto to = [&](std::size_t d) { return is_back ? strips_[d].values : there_[d]; };
    for (std::size_t d = 0; d < strips_.size(); ++d)
      strips_[d].device.submit(edges(), in(from(d)), out(strips_[d].top), out(strips_[d].bottom));
    for (std::size_t d = 0; d < strips_.size(); ++d) {
      const auto& above = d > 0 ? strips_[d - 1].bottom : border_;
      const auto& below = d + 1 < strips_.size() ? strips_[d + 1].top : border_;
      strips_[d].device.submit(relax(), in(from(d)), in(above), in(below), out(to(d)));
    }
  }

  std::vector<Strip>& strips_;
  const Tensor<float>& border_;
  std::vector<Tensor<float>> there_;
  Plan one_, two_;
  Future last_;
};

std::vector<double> reference(std::int64_t n, std::int64_t steps) {
  const std::int64_t wide = n + 2;  // with the border
  std::vector<double> now(static_cast<std::size_t>(wide * wide)), next = now;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      now[static_cast<std::size_t>((i + 1) * wide + j + 1)] =
          static_cast<double>(random_element(kStencilSeed, static_cast<std::uint64_t>(i * n + j)));
  for (std::int64_t s = 0; s < steps; ++s) {
    for (std::int64_t i = 1; i <= n; ++i)
      for (std::int64_t j = 1; j <= n; ++j) {
        const double* at = now.data() + i * wide + j;
        next[static_cast<std::size_t>(i * wide + j)] =
            static_cast<double>(kStencilCentre) * *at +
            static_cast<double>(kStencilSide) * (at[-wide] + at[wide] + at[-1] + at[1]);
      }
    now.swap(next);
  }
  return now;
}

// All values stay within [-1, 1] and each step rounds a few times.
// Returns the grid's digest.
std::uint64_t check(const std::vector<Strip>& strips, std::int64_t n, std::int64_t steps) {
  std::uint64_t digest = 0;
  const auto expected = reference(n, steps);
  const double bound = 4e-7 * static_cast<double>(steps);
  std::int64_t at = 0;
  for (const Strip& strip : strips) {
    const auto host = strip.values.to_host();
    digest = digest_of(host.span(), digest);
    for (const float value : host.span()) {
      const std::int64_t place = (at / n + 1) * (n + 2) + at % n + 1;
      expect_near("grid", static_cast<std::size_t>(at), static_cast<double>(value),
                  expected[static_cast<std::size_t>(place)], bound);
      ++at;
    }
  }
  return digest;
}

Result run(const Context& context) {
  const std::int64_t n = context.values.number("n"), steps = context.values.number("steps");
  auto strips = make_strips(context.devices, n);
  const auto border = context.runtime.zeros({n}, context.devices.front());
  Counted ops;
  Result result;
  if (planned(context)) {
    RecordedSteps recorded(context.runtime, strips, border, n);
    result.seconds = timed(context.runtime, [&] { ops.add(recorded.replay(steps)); });
  } else {
    result.seconds = timed(context.runtime, [&] {
      for (std::int64_t s = 0; s < steps; ++s) step(strips, border, n, ops);
      for (const Strip& strip : strips) strip.values.future().wait();
    });
  }
  const auto count = static_cast<double>(n), rounds = static_cast<double>(steps);
  result.flops = 6 * count * count * rounds;
  result.bytes = 8 * count * rounds * static_cast<double>(strips.size() - 1);
  result.ops = ops.ops();
  result.check = checked(context.runtime, "the grid against a serial one in double precision",
                         [&] { result.digest = check(strips, n, steps); });
  return result;
}

}  // namespace

Workload stencil_workload() {
  return {"stencil",
          "a 2-D five-point stencil, a strip of rows a device, rows exchanged in each step",
          {number("n", 256, 1, 1 << 16, "the grid is n x n"),
           number("steps", 10, 1, 1'000'000, "steps"), plan_parameter()},
          {fill_strip().code(), edges().code(), relax().code()},
          run};
}

}  // namespace weft::workloads
