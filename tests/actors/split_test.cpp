#include <atomic>

#include "framework/builtin.hpp"
#include "framework/trace.hpp"
#include "support/catch.hpp"
#include "tests/actors/each_engine.hpp"
#include "tests/actors/simulated_options.hpp"

using namespace weft;
using namespace weft::test;

// One op over several devices, each with its rows.
namespace {

const auto scale_rows =
    Kernel("scale_rows")
        .cpu([](Cpu&, float factor, In<float> x, In<float> bias, InOut<float> y) {
          for (std::int64_t i = 0; i < y.dim(0); ++i)
            for (std::int64_t j = 0; j < y.dim(1); ++j) {
              const auto at = static_cast<std::size_t>(i * y.dim(1) + j);
              y[at] += factor * x[at] + bias[static_cast<std::size_t>(j)];
            }
        })
        .cost([](float, auto x, auto, auto) {
          return Cost{.flops = 1e5 * static_cast<double>(x.size()), .bytes = 0};
        });
const auto sum_rows = Kernel("sum_rows").cpu([](Cpu&, In<float> x, Reduce<float> sum) {
  for (std::size_t i = 0; i < x.size(); ++i) sum[0] += x[i];
});

std::vector<float> counted(std::int64_t rows, std::int64_t columns) {
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97);
  return values;
}

}  // namespace

TEST_CASE("a split op computes what one op computes, for any shares and row counts") {
  for_each_engine([](Runtime& runtime, const Device& a, const Device& b) {
    if (runtime.engine_of(a) == "cuda") return;  // the kernels here are the host's
    for (const std::vector<double>& weights :
         {std::vector<double>{}, {1, 1}, {1, 3}, {0, 1}, {1, 0}, {1e-3, 1}})
      for (const std::int64_t rows : {1, 2, 7, 64}) {
        Split split = runtime.split({a, b}, weights);
        const auto values = counted(rows, 3);
        const auto x = runtime.from_host(values, {rows, 3});
        const auto bias = runtime.from_host(std::vector<float>{1, 2, 3}, {3});
        const Rows<float> xs = split.rows(x);
        // What becomes of the tensor changes no rows.
        a.submit(kernels::fill(), -1.0f, out(x));
        const Rows<float> ys = split.rows(runtime.zeros({rows, 3}, a));
        for (int i = 0; i < 3; ++i)
          split.submit(scale_rows, 2.0f, in(xs), in(bias), inout(ys)).wait();
        const auto sum = runtime.zeros({1}, a);
        split.submit(sum_rows, in(ys), reduce(sum));
        const auto reached = ys.whole(b).to_host();
        REQUIRE(reached.shape() == Shape{rows, 3});
        float total = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          const float wanted = 3 * (2 * values[i] + static_cast<float>(i % 3 + 1));
          REQUIRE(reached[i] == wanted);
          total += wanted;
        }
        CHECK(sum.to_host()[0] == Approx(total));
      }
  });
}

TEST_CASE("rows that are only written need no value, others do") {
  for_each_engine([](Runtime& runtime, const Device& a, const Device& b) {
    Split split = runtime.split({a, b}, {1, 2});
    const Rows<float> rows = split.rows<float>({9, 2});
    CHECK_THROWS_WITH(rows.whole(a), Catch::Matchers::Contains("no value"));
    CHECK_THROWS_WITH(split.submit(kernels::matmul(), in(rows), in(rows), out(rows)),
                      Catch::Matchers::Contains("no value"));
    split.submit(kernels::fill(), 3.0f, out(rows));
    for (const float value : rows.whole(a).to_host().span()) CHECK(value == 3);

    const auto other = split.rows<float>({8, 2});
    CHECK_THROWS_WITH(split.submit(kernels::matmul(), in(rows), in(rows), out(other)),
                      Catch::Matchers::Contains("9 and 8"));
    CHECK_THROWS_AS(split.submit(kernels::fill(), 1.0f, out(runtime.zeros({4}, a))), UsageError);
    CHECK_THROWS_AS(runtime.split({}), UsageError);
    CHECK_THROWS_AS(runtime.split({runtime.anywhere()}), UsageError);
    CHECK_THROWS_WITH(runtime.split({a, b}, {1}), Catch::Matchers::Contains("1 weights for 2"));
    CHECK_THROWS_AS(runtime.split({a, b}, {0, 0}), UsageError);
    CHECK_THROWS_AS(split.rows<float>(Shape{}), UsageError);
    CHECK_THROWS_AS(split.rows(Tensor<float>()), UsageError);
  });
}

TEST_CASE("a part that fails fails the split op with its cause") {
  for_each_engine([](Runtime& runtime, const Device& a, const Device& b) {
    if (runtime.engine_of(a) == "cuda") return;
    static const auto fails = Kernel("fails").cpu([](Cpu&, InOut<float> x) {
      if (x[0] > 0) throw std::runtime_error("on purpose");
    });
    Split split = runtime.split({a, b}, {1, 1});
    const Rows<float> rows = split.rows(runtime.from_host(std::vector<float>{0, 1}, {2}));
    CHECK_THROWS_WITH(split.submit(fails, inout(rows)).wait(),
                      Catch::Matchers::Contains("on purpose"));
    CHECK_THROWS_WITH(rows.whole(a).to_host().wait(), Catch::Matchers::Contains("on purpose"));
  });
}

TEST_CASE("shares follow the devices' speeds, and beat equal ones as theory says") {
  // A core of some 0.1 TFLOP/s, GPUs of 1 and 2.
  auto run = [](const std::vector<double>& weights) {
    Runtime runtime(simulated("1 socket x 1 core, 2 gpus", "gpu1.flops=2"));
    Split split = runtime.split({runtime.gpu(0), runtime.gpu(1)}, weights);
    const auto bias = runtime.zeros({3}, runtime.gpu(0));
    const Rows<float> x = split.rows(runtime.zeros({3000, 3}, runtime.gpu(0)));
    const Rows<float> y = split.rows(runtime.zeros({3000, 3}, runtime.gpu(0)));
    for (int i = 0; i < 3; ++i) split.submit(scale_rows, 1.0f, in(x), in(bias), inout(y)).wait();
    const auto before = runtime.now();
    for (int i = 0; i < 10; ++i) split.submit(scale_rows, 1.0f, in(x), in(bias), inout(y));
    runtime.wait_idle();
    if (weights.empty()) {
      CHECK(split.shares()[0] == Approx(1.0 / 3).epsilon(0.02));
      CHECK(split.shares()[1] == Approx(2.0 / 3).epsilon(0.02));
    }
    return std::chrono::duration<double>(runtime.now() - before).count();
  };
  const double by_speed = run({}), equal = run({1, 1});
  WARN("by speed " << by_speed << " s, equal " << equal << " s, x " << equal / by_speed);
  // Half of the work on one of 3 units of speed, against a third a unit.
  CHECK(equal / by_speed == Approx(1.5).epsilon(0.05));
}

TEST_CASE("a socket and two GPUs of 1 : 4 : 8 share an op by their speeds") {
  // What a step takes on each alone, and on all together.
  auto run = [](double flops, const std::vector<int>& on, const std::vector<double>& weights) {
    RuntimeOptions options = simulated("1 socket x 1 core, 2 gpus", "gpu1.flops=2");
    options.emulated->flops_per_second = flops;
    Runtime runtime(std::move(options));
    std::vector<Device> devices;
    for (const int i : on) devices.push_back(runtime.devices()[static_cast<std::size_t>(i)]);
    Split split = runtime.split(devices, weights);
    const auto bias = runtime.zeros({3}, runtime.socket(0));
    const Rows<float> x = split.rows(runtime.zeros({3000, 3}, runtime.socket(0)));
    const Rows<float> y = split.rows(runtime.zeros({3000, 3}, runtime.socket(0)));
    for (int i = 0; i < 4; ++i) split.submit(scale_rows, 1.0f, in(x), in(bias), inout(y)).wait();
    const auto before = runtime.now();
    for (int i = 0; i < 5; ++i) split.submit(scale_rows, 1.0f, in(x), in(bias), inout(y)).wait();
    return std::chrono::duration<double>(runtime.now() - before).count() / 5;
  };
  const double socket = run(1e12, {0}, {});
  const double flops = 4 * 3000 * 3 * 1e5 / socket;
  const double slow = run(flops, {1}, {}), fast = run(flops, {2}, {});
  CHECK(socket / slow == Approx(4).epsilon(0.02));
  CHECK(socket / fast == Approx(8).epsilon(0.02));
  const double bound = 1 / (1 / socket + 1 / slow + 1 / fast);
  const double together = run(flops, {0, 1, 2}, {}), equal = run(flops, {0, 1, 2}, {1, 1, 1});
  WARN(bound / together << " of the sum of speeds, equal shares " << bound / equal);
  CHECK(bound / together >= 0.9);
  CHECK(equal == Approx(socket / 3).epsilon(0.02));  // as long as the slowest takes for a third
}

TEST_CASE("shares follow when one of two devices alike becomes slower") {
  std::atomic<bool> is_slow{false};
  RuntimeOptions options = simulated("1 socket x 1 core, 2 gpus");
  options.emulated->delay = [&is_slow](const LaneOp& op) {
    // As much again for each row, whatever the share.
    const bool is_it = is_slow && op.name == "scale_rows" && op.lane.starts_with("gpu0");
    return std::chrono::nanoseconds(is_it ? 1'000'000 : 0);
  };
  Runtime runtime(std::move(options));
  Split split = runtime.split({runtime.gpu(0), runtime.gpu(1)});
  const auto bias = runtime.zeros({3}, runtime.gpu(0));
  const Rows<float> x = split.rows(runtime.zeros({3000, 3}, runtime.gpu(0)));
  const Rows<float> y = split.rows(runtime.zeros({3000, 3}, runtime.gpu(0)));
  auto steps = [&](int count) {
    for (int i = 0; i < count; ++i)
      split.submit(scale_rows, 1.0f, in(x), in(bias), inout(y)).wait();
  };
  steps(3);
  CHECK(split.shares()[0] == Approx(0.5).epsilon(0.03));
  is_slow = true;
  steps(60);
  CHECK(split.shares()[0] < 0.1);  // 1 ms more on 0.45 ms
  const auto reached = y.whole(runtime.gpu(1)).to_host();
  for (const float value : reached.span()) REQUIRE(value == 0);
}

TEST_CASE("a split op is in a plan as its parts are") {
  Runtime runtime(simulated("1 socket x 1 core, 2 gpus"));
  Split split = runtime.split({runtime.gpu(0), runtime.gpu(1)}, {1, 2});
  const auto bias = runtime.from_host(std::vector<float>{1, 1, 1}, {3});
  const Rows<float> x = split.rows(runtime.zeros({30, 3}, runtime.gpu(0)));
  const Rows<float> y = split.rows(runtime.zeros({30, 3}, runtime.gpu(0)));
  const Plan plan =
      runtime.record([&] { split.submit(scale_rows, 1.0f, in(x), in(bias), inout(y)); });
  for (int i = 0; i < 4; ++i) plan.replay();
  const auto reached = y.whole(runtime.gpu(0)).to_host();
  for (const float value : reached.span()) CHECK(value == 5);
}
