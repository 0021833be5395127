#include "tests/actors/each_engine.hpp"

#include <numeric>
#include <thread>

#include "framework/builtin.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"
#include "tests/actors/cuda/through_host.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const auto kIota = on_all(
    Kernel("iota").cpu([](Cpu&, int first, Out<int> x) { std::iota(x.begin(), x.end(), first); }));
const auto kAddTo = on_all(Kernel("add_to").cpu([](Cpu& cpu, int value, InOut<int> x) {
  cpu.parallel_for(x.size(), [&](std::size_t i) { x[i] += value; });
}));
const auto kSum = on_all(Kernel("sum").cpu([](Cpu&, In<int> x, In<int> y, Out<int> z) {
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = x[i] + y[i];
}));
const auto kContribute = on_all(Kernel("contribute").cpu([](Cpu&, int value, Reduce<int> x) {
  for (int& i : x) i += value;
}));
const auto kThrow = thrower_on_all(Kernel("thrower").cpu(
    [](Cpu&, std::string text, InOut<int>) { throw std::runtime_error(text); }));

}  // namespace

TEST_CASE("each engine runs ops in program order", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto x = rt.tensor<int>({1000});
    device.submit(kIota, 5, out(x));
    for (int i = 0; i < 200; ++i) (i % 7 == 0 ? other : device).submit(kAddTo, i, inout(x));
    const auto host = x.to_host();
    for (int i = 0; i < 1000; ++i) REQUIRE(host[static_cast<std::size_t>(i)] == 5 + i + 19900);
  });
}

TEST_CASE("each engine keeps accesses apart: in, out, inout, reduce", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto x = rt.from_host(std::vector<int>{1, 2, 3}, {3});
    auto y = rt.tensor<int>({3}), z = rt.tensor<int>({3}), sum = rt.tensor<int>({3});
    device.submit(kIota, 10, out(y));
    other.submit(kSum, in(x), in(y), out(z));
    device.submit(kSum, in(z), in(z), out(y));
    for (int i = 0; i < 40; ++i) (i % 2 ? device : other).submit(kContribute, i, reduce(sum));
    device.submit(kAddTo, 1, inout(sum));
    CHECK(z.to_host().to_vector() == std::vector<int>{11, 13, 15});
    CHECK(y.to_host().to_vector() == std::vector<int>{22, 26, 30});
    CHECK(sum.to_host().to_vector() == std::vector<int>(3, 781));
  });
}

TEST_CASE("each engine hands scalars over, whatever their type", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device) {
    const std::shared_ptr<int> held = std::make_shared<int>(7);
    auto x = rt.tensor<double>({2});
    using Held = std::shared_ptr<int>;
    const auto scalars =
        on_all(Kernel("scalars").cpu([](Cpu&, Held h, std::string text, double d,
                                        std::vector<int> list, char c, Out<double> to) {
          to[0] = static_cast<double>(text.size()) + d + list[2] + c + *h;
          to[1] = -1;
        }));
    device
        .submit(scalars, Held(held), std::string(100, 'a'), 0.5, std::vector<int>{1, 2, 3}, 'b',
                out(x))
        .wait();
    CHECK(x.to_host()[0] == 100 + 0.5 + 3 + 'b' + 7);
    rt.wait_idle();
    CHECK(held.use_count() == 1);  // the op's copy is gone
  });
}

TEST_CASE("each engine takes empty and one-element tensors", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto none = rt.tensor<int>({0, 5}), one = rt.tensor<int>({}), copy = rt.tensor<int>({0, 5});
    device.submit(kIota, 1, out(none));
    other.submit(kSum, in(none), in(none), out(copy));
    device.submit(kIota, 42, out(one));
    other.submit(kAddTo, 1, inout(one));
    device.submit(kContribute, 1, reduce(none));
    CHECK(none.to_host().size() == 0);
    CHECK(copy.to_host().to_vector().empty());
    CHECK(one.to_host().to_vector() == std::vector<int>{43});
    const auto empty = rt.from_host(std::vector<int>{}, {0});
    CHECK(empty.to_host().size() == 0);
  });
}

TEST_CASE("each engine turns exceptions into failures and goes on", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto x = rt.from_host(std::vector<int>{1, 2, 3}, {3}), y = rt.tensor<int>({3});
    const Future thrown_op = device.submit(kThrow, std::string("no luck"), inout(x));
    const Future dependent = other.submit(kSum, in(x), in(x), out(y));
    const auto host = y.to_host();
    CHECK(thrown<OpError>([&] { thrown_op.wait(); }) ==
          "thrower on " + device.name() + ": kernel threw: no luck");
    CHECK(has(thrown<OpError>([&] { dependent.wait(); }), "no luck (reached thrower → "));
    CHECK(has(thrown<OpError>([&] { static_cast<void>(host.span()); }), "no luck"));
    const auto kOdd = thrower_on_all(Kernel("odd").cpu([](Cpu&, InOut<int>) { throw 7; }));
    auto odd = device.submit(kOdd, inout(y));
    CHECK(has(thrown<OpError>([&] { odd.wait(); }), "no luck"));  // its input had failed
    device.submit(kIota, 1, out(x));
    CHECK(x.to_host().to_vector() == std::vector<int>{1, 2, 3});
    odd = device.submit(kOdd, inout(x));
    CHECK(has(thrown<OpError>([&] { odd.wait(); }), "odd on " + device.name()));
    CHECK(odd.failure()->kind() == FailureKind::KernelThrew);
  });
}

TEST_CASE("each engine copies both ways, large and small", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    for (std::int64_t size : {1, 1000, 300'000, 2'000'000}) {
      std::vector<int> values(static_cast<std::size_t>(size));
      std::iota(values.begin(), values.end(), 3);
      auto x = rt.from_host(values, {size}), y = rt.tensor<int>({size});
      device.submit(kAddTo, 1, inout(x));
      other.submit(kAddTo, 1, inout(x));
      device.submit(kSum, in(x), in(x), out(y));
      const auto host = y.to_host(), before = x.to_host();
      device.submit(kAddTo, 100, inout(x));
      for (int& value : values) value += 2;
      CHECK(before.to_vector() == values);
      for (int& value : values) value *= 2;
      CHECK(host.to_vector() == values);
    }
  });
}

TEST_CASE("each engine copies to and from the program's own memory", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    for (std::int64_t size : {0, 1, 1000, 3'000'001}) {
      std::vector<int> values(static_cast<std::size_t>(size)), back(values.size(), -1), same(back);
      std::iota(values.begin(), values.end(), 3);
      const auto x = device.copy_from(values, {size}),
                 here = rt.socket(0).copy_from(values, {size});
      auto y = rt.tensor<int>({size});
      other.submit(kSum, in(x), in(here), out(y));
      const Future copied = y.copy_to(back), unchanged = x.copy_to(same);
      other.submit(kAddTo, 100, inout(y));
      device.submit(kAddTo, 100, inout(x));
      when_all({copied, unchanged}).wait();
      CHECK(same == values);
      for (int& value : values) value *= 2;
      CHECK(back == values);
      here.copy_to(same).wait();
      if (size > 0) CHECK(same.back() == 2 + size);
    }
    auto x = rt.tensor<int>({4});
    device.submit(kIota, 0, out(x));
    std::vector<int> three(3);
    CHECK(thrown<UsageError>([&] { static_cast<void>(x.copy_to(three)); }) ==
          "copy_to: 3 elements in the program's memory for a tensor of 4");
    CHECK(thrown<UsageError>([&] { static_cast<void>(device.copy_from(three, {4})); }) ==
          "copy_from: 3 elements in the program's memory for a tensor of 4");
    std::vector<int> four(4);
    device.submit(kThrow, std::string("no luck"), inout(x));
    CHECK(has(thrown<OpError>([&] { x.copy_to(four).wait(); }), "no luck"));
  });
}

TEST_CASE("each engine lets handles be dropped with work in flight", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    std::vector<HostArray<int>> hosts;
    for (int i = 0; i < 50; ++i) {
      auto x = rt.tensor<int>({100}), y = rt.tensor<int>({100});
      device.submit(kIota, i, out(x));
      other.submit(kSum, in(x), in(x), out(y));
      if (i % 2) hosts.push_back(y.to_host());
    }
    for (std::size_t i = 0; i < hosts.size(); ++i)
      REQUIRE(hosts[i][1] == 2 * (2 * static_cast<int>(i) + 2));
  });
}

TEST_CASE("each engine orders ops behind futures that no tensor carries", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    std::atomic<int> at{0};
    auto step = [&at](int expected) {
      return [&at, expected](Cpu&) {
        if (at.fetch_add(1) != expected) throw std::logic_error("out of order");
      };
    };
    Promise gate("gate");
    const Future a = device.submit(on_all(Kernel("a").cpu([&at](Cpu&) { at.fetch_add(1); })),
                                   after(gate.future()));
    const Future b = other.submit(on_all(Kernel("b").cpu(step(1))), after(a));
    const Future c = device.submit(on_all(Kernel("c").cpu(step(2))), after(when_all({a, b})));
    CHECK(at == 0);
    CHECK_FALSE(a.is_settled());
    gate.fulfil();
    when_all({a, b, c}).wait();
    CHECK(at == 3);
    rt.wait_idle();
  });
}

TEST_CASE("each engine lets callbacks and coroutines submit", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto x = rt.tensor<int>({10});
    Promise finished("finished");
    const Future all_done = finished.future();
    std::atomic<int> left{100};
    std::function<void()> next = [&] {
      if (left.fetch_sub(1) == 0) {
        finished.fulfil();
        return;
      }
      (left % 2 ? device : other).submit(kAddTo, 1, inout(x)).on_settled(next);
    };
    device.submit(kIota, 0, out(x)).on_settled(next);
    all_done.wait();
    CHECK(x.to_host()[3] == 103);

    auto count = [](Device device, Device other, Tensor<int> x, int rounds) -> Task {
      for (int i = 0; i < rounds; ++i)
        co_await (i % 2 ? device : other).submit(kAddTo, 1, inout(x));
      const auto host = x.to_host();
      co_await host;
      if (host[0] != 150) throw std::runtime_error("counted " + std::to_string(host[0]));
    };
    count(device, other, x, 50).wait();
    CHECK(has(thrown<OpError>([&] { count(device, other, x, 1).wait(); }), "counted 151"));
  });
}

TEST_CASE("each engine multiplies matrices, empty ones too, and refuses unequal shapes",
          "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device) {
    auto a = rt.from_host(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
    auto b = rt.from_host(std::vector<float>{1, 0, 0, 1, 1, 1}, {3, 2});
    CHECK(device.matmul(a, b).to_host().to_vector() == std::vector<float>{4, 5, 10, 11});
    CHECK(thrown<UsageError>([&] { static_cast<void>(device.matmul(a, a)); }) ==
          "matmul: the shapes 2 x 3 and 2 x 3 do not fit: wanted [m, k] and [k, n]");
    auto x = rt.uniform({150, 40}, device, 1), y = rt.uniform({40, 170}, device, 2);
    const auto product = device.matmul(x, y).to_host(), xs = x.to_host(), ys = y.to_host();
    double expected = 0;
    for (std::size_t k = 0; k < 40; ++k)
      expected += static_cast<double>(xs[100 * 40 + k]) * ys[k * 170 + 33];
    CHECK(product[100 * 170 + 33] == Approx(expected).epsilon(1e-4));
    auto no_inner = device.matmul(rt.zeros({2, 0}, device), rt.zeros({0, 3}, device));
    CHECK(no_inner.to_host().to_vector() == std::vector<float>(6, 0.0f));
    CHECK(device.matmul(rt.zeros({0, 4}, device), rt.zeros({4, 3}, device)).to_host().size() == 0);
  });
}

TEST_CASE("each engine counts beyond 32 bits without allocating", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device) {
    constexpr std::int64_t k31 = std::int64_t{1} << 31;
    for (std::int64_t size : {k31 - 1, k31, k31 + 1}) {
      auto x = rt.tensor<std::uint8_t>({size});
      CHECK(x.state()->bytes() == static_cast<std::size_t>(size));
      const auto nothing = on_all(Kernel("write").cpu([](Cpu&, Out<std::uint8_t>) {}));
      const Future write = device.submit(nothing, out(x));
      REQUIRE(write.has_failed());  // more than there is: at once, and nothing was allocated
      CHECK(write.failure()->kind() == FailureKind::OutOfMemory);
      CHECK(has(write.failure()->describe(), "wanted " + std::to_string(size) + " bytes"));
    }
    // Addresses as a kernel computes them, over memory that is not there.
    const Shape shape{1 << 16, (1 << 15) + 1};
    const In<float> view(nullptr, shape);
    CHECK(view.size() == static_cast<std::size_t>(k31) + 65536);
    CHECK(reinterpret_cast<std::uintptr_t>(view.end()) == 4 * view.size());
    rt.wait_idle();
  });
}

TEST_CASE("each engine runs more than fits, as memory comes free", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device) {
    // 40 tensors of 4 MiB through 64 MiB (GPU): each is dropped after its read-back.
    std::vector<HostArray<int>> results;
    for (int i = 0; i < 40; ++i) {
      auto x = rt.tensor<int>({1 << 20});
      device.submit(kIota, i, out(x));
      results.push_back(x.to_host());
    }
    for (int i = 0; i < 40; ++i) REQUIRE(results[static_cast<std::size_t>(i)][5] == i + 5);
  });
}

TEST_CASE("each engine refuses a kernel without a variant for it", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device) {
    auto code = std::make_shared<KernelCode>();
    code->name = "nowhere";
    auto x = rt.tensor<int>({3});
    const std::string variant = rt.engine_of(device) == "cuda" ? "cuda" : "cpu";
    CHECK(has(thrown<UsageError>([&] { device.submit(Kernel<Out<int>>(code), out(x)); }),
              "kernel nowhere has no " + variant + " variant, which " + device.name() + " needs"));
  });
}

TEST_CASE("each engine serves several submitting threads", "[conformance]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto shared = rt.from_host(std::vector<int>(64, 1), {64});
    auto sum = rt.tensor<int>({64});
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        auto mine = rt.tensor<int>({64});
        device.submit(kIota, t, out(mine));
        for (int i = 0; i < 50; ++i) {
          auto next = rt.tensor<int>({64});
          (i % 3 ? device : other).submit(kSum, in(mine), in(shared), out(next));
          (i % 2 ? device : other).submit(kContribute, 1, reduce(sum));
          mine = next;
        }
        wrong += mine.to_host()[10] != t + 10 + 50;
      });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(sum.to_host()[63] == 200);
  });
}
