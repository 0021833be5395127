// Steps that plan themselves.
#include "framework/planned.hpp"

#include <atomic>
#include <thread>

#include "actors/collective.hpp"
#include "support/thrown.hpp"
#include "tests/actors/cuda/through_host.hpp"
#include "tests/actors/each_engine.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const auto kAdd = on_all(Kernel("add").cpu([](Cpu&, int value, In<int> x, Out<int> y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] + value;
}));
const auto kDouble = on_all(Kernel("double").cpu([](Cpu&, InOut<int> x) {
  for (int& i : x) i *= 2;
}));
const auto kFailIf = thrower_on_all(Kernel("fail_if").cpu([](Cpu&, int fails, InOut<int> x) {
  if (fails) throw std::runtime_error("asked to fail");
  for (int& i : x) i += 1;
}));

Tensor<int> filled(const Runtime& rt, std::int64_t size, int value) {
  return rt.from_host(std::vector<int>(static_cast<std::size_t>(size), value), {size});
}

std::vector<int> all(std::size_t size, int value) {
  return std::vector<int>(size, value);
}

}  // namespace

TEST_CASE("a planned step is recorded once for each shape and number", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    int runs = 0;
    const auto total = filled(rt, 1, 0);
    auto step = rt.planned([&](Tensor<int> x, Tensor<int> y, int value) {
      ++runs;
      device.submit(kAdd, value, in(x), out(y));
      other.submit(kDouble, inout(y));
      if (x.shape()[0] == 1) device.submit(kAdd, 1, in(total), out(y));
    });
    const auto x = filled(rt, 5, 1), y = filled(rt, 5, 0), z = filled(rt, 5, 0);
    step(x, y, 3);
    CHECK(y.to_host().to_vector() == all(5, 8));
    step(y, z, 3);
    step(x, y, 3);
    CHECK(z.to_host().to_vector() == all(5, 22));
    CHECK(runs == 2);      // once more with other tensors: it may have captured one of the first
    step(z, y, 4).wait();  // another number
    CHECK(y.to_host().to_vector() == all(5, 52));
    const auto large = filled(rt, 1000, 7), result = rt.tensor<int>({1000});
    for (int i = 0; i < 10; ++i) step(large, result, 3);
    CHECK(result.to_host().to_vector() == all(1000, 20));
    CHECK(runs == 4);
    CHECK(step.recordings() == 4);
    CHECK(has(step.explain(), "add"));
    step(x, y, 3);  // as before
    CHECK(runs == 4);
    CHECK(y.to_host().to_vector() == all(5, 8));
  });
}

TEST_CASE("tensors change places between calls of a planned step", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto step = rt.planned([&](Tensor<int> from, Tensor<int> to) {
      device.submit(kAdd, 1, in(from), out(to));
      other.submit(kAdd, 1, in(to), out(from));
      device.submit(kAdd, 1, in(from), out(to));
    });
    auto a = filled(rt, 5, 0), b = filled(rt, 5, 0);
    for (int i = 0; i < 21; ++i) {
      step(a, b);
      std::swap(a, b);
    }
    CHECK(a.to_host().to_vector() == all(5, 63));
    CHECK(step.recordings() == 2);
  });
}

TEST_CASE("the same tensor twice, and one that is captured, are other programs", "[plan]") {
  Runtime rt(engines().front().options());
  const Device device = rt.socket(0);
  const auto captured = filled(rt, 5, 100);
  auto step = rt.planned([&](Tensor<int> x, Tensor<int> y) {
    device.submit(kDouble, inout(x));
    device.submit(kAdd, 1, in(y), out(captured));
  });
  const auto x = filled(rt, 5, 1), y = filled(rt, 5, 10);
  step(x, y);
  step(x, y);
  CHECK(captured.to_host().to_vector() == all(5, 11));
  step(x, x);  // reads what it has doubled
  CHECK(captured.to_host().to_vector() == all(5, 9));
  CHECK(step.recordings() == 2);
  step(captured, y);
  step(captured, y);
  CHECK(captured.to_host().to_vector() == all(5, 11));
  step(y, x);
  step(x, y);
  CHECK(captured.to_host().to_vector() == all(5, 21));
  CHECK(x.to_host().to_vector() == all(5, 16));
}

TEST_CASE("sums over devices and kernels with several numbers are told apart", "[plan]") {
  RuntimeOptions options;
  options.machine = parse_machine("1 socket x 2 cores, 2 gpus");
  options.gpus = GpuMode::Emulated;
  options.simulate = false;
  Runtime rt(std::move(options));
  const auto scale = Kernel("scale").cpu([](Cpu&, char by, double add, InOut<float> x) {
    for (float& v : x) v = v * static_cast<float>(by) + static_cast<float>(add);
  });
  const Collective pair = rt.collective({rt.gpu(0), rt.gpu(1)});
  auto step = rt.planned([&](Tensor<float> x, Tensor<float> y, double add) {
    rt.gpu(0).submit(scale, char{2}, add, inout(x));
    pair.all_reduce(std::vector{x, y});
  });
  auto one = [&](float value) { return rt.from_host(std::vector<float>{value}, {1}); };
  for (int i = 0; i < 6; ++i) {
    const auto x = one(1), y = one(10);
    step(x, y, 0.5);
    CHECK(x.to_host()[0] == 12.5f);
    CHECK(y.to_host()[0] == 12.5f);
  }
  CHECK(step.recordings() == 2);
}

TEST_CASE("tensors that a planned step makes for itself", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto step = rt.planned([&](Tensor<int> x, Tensor<int> y) {
      const auto between = rt.tensor<int>(x.shape());
      device.submit(kAdd, 1, in(x), out(between));
      other.submit(kDouble, inout(between));
      device.submit(kAdd, 0, in(between), out(y));
    });
    // Each call begins with a sum of its own.
    auto sums = rt.planned([&](Tensor<int> x, Tensor<int> y) {
      const auto sum = filled(rt, 3, 100);
      device.submit(kDouble, inout(sum));
      device.submit(kAdd, 0, in(sum), out(y));
      device.submit(kDouble, inout(x));
    });
    for (int i = 0; i < 6; ++i) {
      const auto x = filled(rt, 3, i), y = filled(rt, 3, 0);
      step(x, y);
      CHECK(y.to_host().to_vector() == all(3, 2 * (i + 1)));
      sums(x, y);
      CHECK(y.to_host().to_vector() == all(3, 200));
    }
    CHECK(step.recordings() == 2);
    CHECK(sums.recordings() == 6);
  });
}

TEST_CASE("numbers are told apart by type and place, not by bytes alone", "[plan]") {
  Runtime rt(engines().front().options());
  const Device device = rt.socket(0);
  const auto inplace = on_all(Kernel("plus").cpu([](Cpu&, int value, InOut<int> x) {
    for (int& i : x) i += value;
  }));
  auto plus = rt.planned([&](std::int64_t value, Tensor<int> x, std::int64_t more) {
    device.submit(inplace, static_cast<int>(value % 1000 + more), inout(x));
  });
  const auto x = filled(rt, 2, 0);
  for (int i = 0; i < 2; ++i) {
    plus(-1, x, 0);
    plus(4294967295u, x, 0);  // % 1000 = 295
    plus(0, x, -1);
  }
  CHECK(x.to_host().to_vector() == all(2, 2 * (-1 + 295 - 1)));
  CHECK(plus.recordings() == 3);
}

TEST_CASE("a body that does something else each time is run each time", "[plan]") {
  Runtime rt(engines().front().options());
  const Device device = rt.socket(0);
  int value = 0;
  auto step = rt.planned(
      [&](Tensor<int> x, Tensor<int> y) { device.submit(kAdd, ++value, in(x), out(y)); });
  const auto zero = filled(rt, 2, 0);
  for (int i = 1; i <= 5; ++i) {
    const auto result = rt.tensor<int>({2});
    step(zero, result);
    CHECK(result.to_host().to_vector() == all(2, i));
  }
  CHECK(step.recordings() == 5);
}

TEST_CASE("what fails in a planned step ends with its call", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device) {
    auto step = rt.planned([&](Tensor<int> x, bool fails) {
      device.submit(kFailIf, fails ? 1 : 0, inout(x));
      device.submit(kDouble, inout(x));
    });
    const auto x = filled(rt, 3, 1);
    step(x, false).wait();
    for (int i = 0; i < 2; ++i) {
      CHECK(has(thrown<OpError>([&] { step(x, true).wait(); }), "asked to fail"));
      const auto fresh = filled(rt, 3, 5);
      step(fresh, false).wait();
      CHECK(fresh.to_host().to_vector() == all(3, 12));
    }
    CHECK_THROWS_AS(step(Tensor<int>(), false), UsageError);
    auto refused = rt.planned([](Tensor<int>) { throw std::logic_error("from the body"); });
    CHECK(thrown<std::logic_error>([&] { refused(x); }) == "from the body");
    step(filled(rt, 3, 1), false).wait();
  });
}

TEST_CASE("a lost device: a planned step is recorded again and the program goes on", "[plan]") {
  RuntimeOptions options;
  options.machine = parse_machine("1 socket x 2 cores, 2 gpus");
  options.gpus = GpuMode::Emulated;
  options.simulate = false;
  Runtime rt(std::move(options));
  std::atomic<bool> is_lost{false};
  auto step = rt.planned([&](Tensor<int> x) {
    const Device gpu = rt.gpu(is_lost ? 1 : 0);  // what the program finds
    for (int i = 0; i < 4; ++i) gpu.submit(kDouble, inout(x));
  });
  const auto x = filled(rt, 4, 1);
  step(x);
  step(x);
  CHECK(x.to_host().to_vector() == all(4, 256));
  rt.lose(rt.gpu(0));
  is_lost = true;
  const auto y = filled(rt, 4, 1);
  step(y);
  step(y);
  CHECK(y.to_host().to_vector() == all(4, 256));
  CHECK(step.recordings() == 2);
}

TEST_CASE("planned steps in a recording, in each other and from several threads", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto inner = rt.planned([&](Tensor<int> x) { device.submit(kDouble, inout(x)); });
    auto outer = rt.planned([&](Tensor<int> x, Tensor<int> y) {
      inner(x);
      other.submit(kAdd, 1, in(x), out(y));
    });
    const auto x = filled(rt, 3, 1), y = filled(rt, 3, 0);
    inner(x);
    for (int i = 0; i < 3; ++i) outer(x, y);
    CHECK(y.to_host().to_vector() == all(3, 17));
    const Plan plan = rt.record([&] { outer(x, y); });
    plan.replay();
    CHECK(y.to_host().to_vector() == all(3, 65));
    if (rt.is_simulated()) return;
    std::vector<std::thread> threads;
    std::vector<Tensor<int>> mine;
    for (int t = 0; t < 3; ++t) mine.push_back(filled(rt, 3, 1));
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) inner(mine[static_cast<std::size_t>(t)]);
      });
    for (auto& thread : threads) thread.join();
    for (const auto& each : mine) CHECK(each.to_host().to_vector() == all(3, 1 << 20));
    rt.wait_idle();
  });
}
