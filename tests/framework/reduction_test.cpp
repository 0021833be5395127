#include "framework/reduction.hpp"

#include <numeric>

#include "support/catch.hpp"
#include "support/drained_fabric.hpp"
#include "support/leaks.hpp"
#include "support/thrown.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const auto kAdd = Kernel("add").cpu([](Cpu&, float value, Reduce<float> sum) {
  for (float& x : sum) x += value;
});
const auto kRead = Kernel("read").cpu([](Cpu&, In<float>) {});
const auto kSet = Kernel("set").cpu(
    [](Cpu&, float value, Out<float> x) { std::fill(x.begin(), x.end(), value); });
const auto kSetFrom = Kernel("set_from").cpu([](Cpu&, In<float>, Out<float>) {});

float value_of(DrainedFabric& machine, const Tensor<float>& tensor) {
  const auto host = tensor.to_host();
  machine.run_all();
  return host[0];
}

}  // namespace

TEST_CASE("contributions run side by side and are added in submission order",
          "[framework][reduction]") {
  const Leaks leaks;
  {
    DrainedFabric machine(0);
    Device cpu = machine.device(0);
    auto sum = cpu.tensor<float>({4});
    cpu.submit(kSet, 1e8f, out(sum));
    const float values[] = {1.0f, -1e8f, 3.5f, 1e-3f};
    for (float value : values) cpu.submit(kAdd, value, reduce(sum));
    auto ready = machine.take(machine.mailbox(0));
    CHECK(ready.size() == 5);
    while (!ready.empty()) machine.run(ready.back()), ready.pop_back();  // in another order
    float expected = 1e8f;
    for (float value : values) expected += value;
    CHECK(value_of(machine, sum) == expected);
    CHECK(value_of(machine, sum) == expected);  // added once
  }
  leaks.check();
}

TEST_CASE("a sum may start without a value and may grow long", "[framework][reduction]") {
  const Leaks leaks;
  {
    DrainedFabric machine(2);
    auto sum = machine.device(0).tensor<float>({4});
    float expected = 0;
    for (int i = 0; i < 100; ++i) {
      machine.device(static_cast<std::size_t>(i % 3)).submit(kAdd, 0.1f * i, reduce(sum));
      expected = i == 0 ? 0.0f : expected + (0.0f + 0.1f * static_cast<float>(i));
      if (i == 0) expected = 0.1f * 0;
    }
    CHECK(sum.state()->partials->size() <= 16);
    CHECK(value_of(machine, sum) == expected);
  }
  leaks.check();
}

TEST_CASE("contributions are dropped by what overwrites them", "[framework][reduction]") {
  const Leaks leaks;
  {
    DrainedFabric machine(0);
    Device cpu = machine.device(0);
    auto sum = cpu.tensor<float>({4});
    cpu.submit(kAdd, 5.0f, reduce(sum));
    cpu.submit(kSet, 1.0f, out(sum));
    cpu.submit(kAdd, 2.0f, reduce(sum));
    CHECK(value_of(machine, sum) == 3.0f);
    cpu.submit(kAdd, 2.0f, reduce(sum));  // dropped with the tensor
  }
  leaks.check();
}

TEST_CASE("a refused submission leaves contributions alone", "[framework][reduction]") {
  DrainedFabric machine(0);
  Device cpu = machine.device(0);
  auto sum = cpu.tensor<float>({4}), unwritten = cpu.tensor<float>({4});
  cpu.submit(kAdd, 5.0f, reduce(sum));
  CHECK_THROWS_AS(cpu.submit(kSetFrom, in(unwritten), out(sum)), UsageError);
  CHECK(value_of(machine, sum) == 5.0f);
}

TEST_CASE("a failed contribution fails the sum", "[framework][reduction]") {
  const Leaks leaks;
  {
    DrainedFabric machine(0);
    Device cpu = machine.device(0);
    auto sum = cpu.tensor<float>({4});
    cpu.submit(kAdd, 1.0f, reduce(sum));
    cpu.submit(kAdd, 2.0f, reduce(sum));
    const auto ready = machine.take(machine.mailbox(0));
    REQUIRE(ready.size() == 2);
    machine.run(ready[0], Failure::make(FailureKind::Injected, "add", "socket0", "lost it"));
    machine.run(ready[1]);
    const Future read = cpu.submit(kRead, in(sum));
    machine.run_all();
    REQUIRE(read.has_failed());
    CHECK(read.failure()->root_message() == "lost it");
    CHECK(read.failure()->chain() == std::vector<std::string>{"add", "sum_partials", "read"});
  }
  leaks.check();
}

TEST_CASE("a contribution that can never fit fails the sum, whatever else was added",
          "[framework][reduction]") {
  const Leaks leaks;
  {
    DrainedFabric machine(1, 1000);
    auto sum = machine.device(0).tensor<float>({1000});
    machine.device(0).submit(kAdd, 1.0f, reduce(sum));
    const Future too_big = machine.device(1).submit(kAdd, 2.0f, reduce(sum));
    CHECK(too_big.has_failed());
    machine.device(0).submit(kAdd, 3.0f, reduce(sum));
    const Future read = machine.device(0).submit(kRead, in(sum));
    machine.run_all();
    REQUIRE(read.has_failed());
    CHECK(read.failure()->kind() == FailureKind::OutOfMemory);
    machine.device(0).submit(kSet, 4.0f, out(sum));
    CHECK(value_of(machine, sum) == 4.0f);
  }
  leaks.check();
}
