// What happens in virtual time at the very same moment, or when something goes wrong.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "actors/runtime.hpp"
#include "framework/virtual_waits.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"
#include "topology/discover.hpp"

using namespace weft;
using namespace weft::test;

namespace {

RuntimeOptions simulated(const std::string& machine) {
  RuntimeOptions options;
  options.machine = parse_machine(machine);
  options.simulate = true;
  options.data = SimulatedData::None;
  options.emulated = EmulatedOptions{};
  options.emulated->flops_per_second = 1e12;
  options.emulated->compute_lanes = 1;
  options.serial = false;
  return options;
}

// `flops` are what it costs.
const auto kCosts =
    Kernel("costs").cpu([](Cpu&, double, Out<float>) {}).cost([](double flops, Out<float>) {
      if (flops < 0) throw std::runtime_error("no price");
      return Cost{flops, 0};
    });

}  // namespace

// An op comes to a GPU's lane just when the one before it there may start.
TEST_CASE("a lane starts an op once, whatever happens at that moment", "[actors][simulated]") {
  Runtime rt(simulated("1 socket x 1 core, 1 gpu"));
  auto x = rt.tensor<float>({1}), y = rt.tensor<float>({1}), z = rt.tensor<float>({1});
  const auto start = rt.now();
  rt.socket(0).submit(kCosts, 1e9, out(x)).wait();
  const double per_ns = 1e9 / static_cast<double>((rt.now() - start).count());
  for (int i = 0; i < 1000; ++i) {  // ends a nanosecond later in each round
    rt.wait_idle();
    const Future before = rt.socket(0).submit(kCosts, per_ns * (400 + i), out(x));
    const Future behind = rt.gpu(0).submit(kCosts, 1e6, out(y), after(before));
    CHECK_FALSE(before.wait_for(std::chrono::nanoseconds(1000)));
    const Future own = rt.gpu(0).submit(kCosts, 1e6, out(z));
    behind.wait();
    own.wait();
  }
}

TEST_CASE("a kernel whose cost cannot be told fails, and others go on", "[actors][simulated]") {
  Runtime rt(simulated("1 socket x 1 core, 1 gpu"));
  for (const Device& device : {rt.gpu(0), rt.socket(0)}) {
    auto x = rt.tensor<float>({1}), y = rt.tensor<float>({1}), z = rt.tensor<float>({1});
    const Future thrown_by_cost = device.submit(kCosts, -1.0, out(x));
    const Future endless = device.submit(kCosts, std::numeric_limits<double>::infinity(), out(y));
    const Future good = device.submit(kCosts, 1.0, out(z));
    CHECK(has(thrown<OpError>([&] { thrown_by_cost.wait(); }), "its cost: no price"));
    CHECK(has(thrown<OpError>([&] { endless.wait(); }), "its cost: not a finite number"));
    good.wait();
  }
}

TEST_CASE("virtual time stands still while a message is on its way", "[actors][simulated]") {
  const Runtime rt(simulated("1 socket x 1 core"));
  const auto start = rt.now();
  {
    const virtual_waits::MessageInFlight message;
    virtual_waits::poll();
    CHECK(rt.now() == start);
  }
  virtual_waits::poll();
  CHECK(rt.now() > start);
}
