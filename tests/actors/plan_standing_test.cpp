// Ops of sockets that are made once and stay from replay to replay.
#include <atomic>
#include <chrono>
#include <thread>

#include "framework/plan.hpp"
#include "support/thrown.hpp"
#include "tests/actors/each_engine.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const auto kAdd = Kernel("add").cpu([](Cpu&, int value, InOut<int> x) { x[0] += value; });
const auto kCopy = Kernel("copy").cpu([](Cpu&, In<int> x, Out<int> y) { y[0] = x[0]; });
const auto kWrite = Kernel("write").cpu([](Cpu&, int value, Out<int> x) { x[0] = value; });
const auto kMix = Kernel("mix").cpu(
    [](Cpu&, In<int> x, In<int> y, Out<int> z) { z[0] = (3 * x[0] + 5 * y[0] + 1) % 65521; });
const auto kFailIf = Kernel("fail_if").cpu([](Cpu&, int fails, InOut<int> x) {
  if (fails) throw std::runtime_error("asked to fail");
  x[0] += 1;
});
const auto kNamed = Kernel("named").cpu(
    [](Cpu&, std::string text, InOut<int> x) { x[0] += static_cast<int>(text.size()); });
const auto kTake = Kernel("take").cpu([](Cpu&, std::string& text, InOut<int> x) {
  x[0] += static_cast<int>(std::exchange(text, "").size());
});
const auto kNothing = Kernel("nothing").cpu([](Cpu&, std::atomic<int>* count) { ++*count; });

RuntimeOptions one_socket(const char* machine = "1 socket x 2 cores") {
  RuntimeOptions options;
  options.machine = parse_machine(machine);
  options.gpus = GpuMode::None;
  options.simulate = false;
  options.trace = false;
  options.pin = false;
  return options;
}

Tensor<int> number(const Runtime& rt, int value) {
  return rt.from_host(std::vector<int>{value}, {1});
}

bool stands(const Plan& plan, std::size_t ops) {
  return has(plan.explain(), "standing from replay to replay: " + std::to_string(ops) + " ops");
}

// Columns that look at their neighbours, by steps, over two fields.
void sweep(const Device& device, std::vector<Tensor<int>> (&fields)[2], int steps) {
  const std::size_t width = fields[0].size();
  for (int step = 0; step < steps; ++step)
    for (std::size_t x = 0; x < width; ++x)
      device.submit(kMix, in(fields[step % 2][x]), in(fields[step % 2][(x + 1) % width]),
                    out(fields[(step + 1) % 2][x]));
}

}  // namespace

TEST_CASE("what nobody outside the plan hears of is made once", "[plan]") {
  Runtime rt(one_socket());
  const Device device = rt.socket(0);
  const auto x = number(rt, 0), y = number(rt, 0);
  const Plan chain = rt.record([&] {
    for (int i = 0; i < 10; ++i) device.submit(kAdd, 1, inout(x));
    device.submit(kCopy, in(x), out(y));
  });
  CHECK_FALSE(has(chain.explain(), "standing"));
  chain.replay().wait();
  CHECK(stands(chain, 8));  // all but the first, the last writer of x, and its reader
  for (int i = 0; i < 20; ++i) chain.replay();  // more than may stand at once
  CHECK(y.to_host()[0] == 220);
  rt.wait_idle();
  chain.replay().wait();
  CHECK(stands(chain, 8));
}

TEST_CASE("sweeps replayed in a row, on one socket and on two, equal those submitted", "[plan]") {
  for (const char* machine : {"1 socket x 1 core", "1 socket x 4 cores", "2 sockets x 2 cores"}) {
    INFO(machine);
    Runtime rt(one_socket(machine));
    const auto last = static_cast<unsigned>(rt.socket_count() - 1);
    std::vector<Tensor<int>> fields[2], others[2];
    for (int f = 0; f < 2; ++f)
      for (int x = 0; x < 9; ++x) {
        fields[f].push_back(number(rt, 10 * f + x));
        others[f].push_back(number(rt, 10 * f + x));
      }
    const auto both = [&](std::vector<Tensor<int>>(&data)[2]) {
      sweep(rt.socket(0), data, 20);
      sweep(rt.socket(last), data, 6);
      sweep(rt.socket(0), data, 14);
    };
    const Plan plan = rt.record([&] { both(fields); });
    for (int i = 0; i < 30; ++i) {
      plan.replay();
      if (i % 7 == 0) rt.wait_idle();
    }
    for (int i = 0; i < 31; ++i) both(others);
    for (int f = 0; f < 2; ++f)
      for (std::size_t x = 0; x < 9; ++x)
        CHECK(fields[f][x].to_host()[0] == others[f][x].to_host()[0]);
    plan.replay().wait();
    CHECK(has(plan.explain(), "standing"));
  }
}

TEST_CASE("scalars and tensors are as they are set when a replay begins", "[plan]") {
  Runtime rt(one_socket());
  const Device device = rt.socket(0);
  const auto x = number(rt, 0), z = number(rt, 0), other = number(rt, 1000);
  const auto temporary = rt.tensor<int>({1});
  const Plan plan = rt.record([&] {
    device.submit(kCopy, in(x), out(temporary));
    device.submit(kAdd, 1, inout(temporary));
    device.submit(kNamed, std::string(100, 'a'), inout(temporary));
    device.submit(kTake, std::string(7, 'b'), inout(temporary));
    device.submit(kAdd, 2, inout(temporary));
    device.submit(kCopy, in(temporary), out(z));
  });
  const auto result = [&] { return z.to_host()[0]; };
  for (int i = 0; i < 3; ++i) plan.replay();
  CHECK(result() == 110);
  rt.wait_idle();
  plan.replay().wait();
  CHECK(stands(plan, 2));  // not the one that changes its scalar, nor the last writer
  plan.set_scalar<0>(kNamed, std::string(200, 'c'));
  plan.replay();
  plan.replay();
  CHECK(result() == 210);
  plan.set_scalar_of<0>(kAdd, 0, 50).replay();
  plan.bind(x, other);
  plan.replay();
  CHECK(result() == 1259);
  plan.bind(temporary, number(rt, 5));
  plan.replay();
  plan.replay();
  CHECK(result() == 1259);
  plan.set_scalar_of<0>(kAdd, 0, 1);
  plan.bind(x, x);
  for (int i = 0; i < 5; ++i) plan.replay();
  CHECK(result() == 210);
}

TEST_CASE("a failure among them fails what follows, and the next replay works", "[plan]") {
  Runtime rt(one_socket());
  const Device device = rt.socket(0);
  const auto x = number(rt, 0), y = number(rt, 0), z = number(rt, 0);
  const auto one = rt.tensor<int>({1}), two = rt.tensor<int>({1});
  const Plan plan = rt.record([&] {
    device.submit(kCopy, in(x), out(one));
    device.submit(kAdd, 1, inout(one));
    device.submit(kFailIf, 0, inout(one));
    for (int i = 0; i < 5; ++i) device.submit(kAdd, 1, inout(one));
    device.submit(kCopy, in(one), out(y));
    device.submit(kCopy, in(x), out(two));
    for (int i = 0; i < 5; ++i) device.submit(kAdd, 1, inout(two));
    device.submit(kCopy, in(two), out(z));
  });
  plan.replay().wait();
  CHECK(y.to_host()[0] == 7);
  for (int round = 0; round < 3; ++round) {
    plan.set_scalar<0>(kFailIf, 1);
    const Future failed = plan.replay();
    CHECK(has(thrown<OpError>([&] { failed.wait(); }), "asked to fail"));
    const std::string why = thrown<OpError>([&] { y.to_host().wait(); });
    CHECK(has(why, "asked to fail"));
    CHECK(has(why, "add"));
    CHECK(z.to_host()[0] == 5);  // nothing to do with it
    plan.set_scalar<0>(kFailIf, 0);
    for (int i = 0; i < 3; ++i) plan.replay();
    CHECK(y.to_host()[0] == 7);
  }
  rt.wait_idle();
  plan.replay().wait();
  CHECK(stands(plan, 10));
}

TEST_CASE("ops without data that wait for nothing, and plans dropped under way", "[plan]") {
  Runtime rt(one_socket());
  const Footprint before = Footprint::of(rt.fabric());
  std::atomic<int> count{0};
  for (int round = 0; round < 20; ++round) {
    const Plan plan = rt.record([&] {
      for (int i = 0; i < 1000; ++i) rt.socket(0).submit(kNothing, &count);
    });
    plan.replay();
    plan.replay();
    if (round % 2 == 0) plan.replay().wait();
  }
  rt.wait_idle();
  CHECK(count == 20 * 3000 + 10 * 1000);
  CHECK((settled_footprint(rt, before) == before));
}

TEST_CASE("a plan with ops that stand outlives its runtime", "[plan]") {
  const std::int64_t ops = op_pool::live(), tensors = live_tensors();
  {
    Plan plan;
    {
      Runtime rt(one_socket());
      const auto x = number(rt, 0);
      plan = rt.record([&] {
        for (int i = 0; i < 10; ++i) rt.socket(0).submit(kNamed, std::string("ab"), inout(x));
      });
      plan.replay().wait();
      CHECK(stands(plan, 8));
    }
    CHECK(has(thrown<UsageError>([&] { plan.replay(); }), "runtime has ended"));
  }
  CHECK(op_pool::live() == ops);
  CHECK(live_tensors() == tensors);
}

TEST_CASE("several failures, some from outside the plan, reach those that stand", "[plan]") {
  Runtime rt(one_socket());
  const Device device = rt.socket(0);
  const auto a = number(rt, 1), b = number(rt, 1), c = number(rt, 0);
  const auto fails =
      Kernel("fails").cpu([](Cpu&, InOut<int>) { throw std::runtime_error("asked to fail"); });
  const auto one = rt.tensor<int>({1}), two = rt.tensor<int>({1}), three = rt.tensor<int>({1});
  const Plan plan = rt.record([&] {
    device.submit(kCopy, in(a), out(one));
    device.submit(kCopy, in(b), out(two));
    device.submit(kMix, in(one), in(two), out(three));
    for (int i = 0; i < 4; ++i) device.submit(kAdd, 1, inout(three));
    device.submit(kCopy, in(three), out(c));
  });
  for (int round = 0; round < 20; ++round) {
    device.submit(fails, inout(a));
    device.submit(fails, inout(b));
    const Future failed = plan.replay(), again = plan.replay();
    CHECK(has(thrown<OpError>([&] { failed.wait(); }), "asked to fail"));
    CHECK(has(thrown<OpError>([&] { again.wait(); }), "asked to fail"));
    for (const auto& x : {a, b}) device.submit(kWrite, 1, out(x));
    plan.replay();
    CHECK(c.to_host()[0] == 13);
  }
  CHECK(has(plan.explain(), "standing"));
}

TEST_CASE("who waits for whom shows ops that stand", "[plan]") {
  Runtime rt(one_socket());
  const Device device = rt.socket(0);
  std::atomic<bool> may_go{true}, has_come{false};
  const auto hold = Kernel("hold").cpu([&](Cpu&, InOut<int> x) {
    has_come = true;
    while (!may_go) std::this_thread::yield();
    x[0] += 1;
  });
  const auto x = number(rt, 0);
  const Plan plan = rt.record([&] {
    for (int i = 0; i < 3; ++i) device.submit(kAdd, 1, inout(x));
    device.submit(hold, inout(x));
    for (int i = 0; i < 3; ++i) device.submit(kAdd, 1, inout(x));
  });
  rt.wait_idle();
  may_go = has_come = false;
  const Future done = plan.replay();
  while (!has_come) std::this_thread::yield();
  const std::string waits = rt.wait_for_graph();
  INFO(waits);
  may_go = true;
  done.wait();
  CHECK(stands(plan, 5));
  const auto line = [&](const std::string& begin, const std::string& rest) {
    const std::size_t at = waits.find(begin);
    return at != std::string::npos &&
           waits.substr(at, waits.find('\n', at) - at).find(rest) != std::string::npos;
  };
  CHECK(line("  hold", "is ready or running"));
  CHECK(line("  add", "waits for"));
  CHECK(has(waits, "waits for hold"));
  rt.wait_idle();
  CHECK(rt.wait_for_graph() == "");
}
