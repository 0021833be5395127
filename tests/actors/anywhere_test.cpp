#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "framework/builtin.hpp"
#include "framework/placer.hpp"
#include "framework/trace.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "tests/actors/each_engine.hpp"
#include "tests/actors/simulated_options.hpp"

using namespace weft;
using namespace weft::test;

// Ops whose devices nobody names.
namespace {

// Takes as many flops as it says.
const auto work = Kernel("work")
                      .cpu([](Cpu&, double, InOut<float> x) { x[0] += 1; })
                      .cost([](double flops, auto) { return Cost{.flops = flops, .bytes = 0}; });
const auto join = Kernel("join")
                      .cpu([](Cpu&, double, In<float> x, InOut<float> y) { y[0] += x[0]; })
                      .cost([](double flops, auto, auto) { return Cost{.flops = flops}; });

// Ops by the actor that ran them.
std::map<std::string, std::size_t> ops_by_actor(const Runtime& runtime) {
  std::map<std::string, std::size_t> counts;
  const TraceData trace = runtime.tracer()->collect();
  for (const TraceData::Span& span : trace.spans)
    if (span.kind == SpanKind::Kernel) ++counts[trace.tracks[span.track].actor];
  return counts;
}

double seconds_of(const Runtime& runtime, const std::function<void()>& body) {
  const auto before = runtime.now();
  body();
  runtime.wait_idle();
  return std::chrono::duration<double>(runtime.now() - before).count();
}

// Places every op somewhere at random, and must get the same results.
class RandomPlacement final : public PlacementPolicy {
 public:
  [[nodiscard]] std::string name() const override { return "random"; }
  std::size_t choose(std::span<const PlacementOption> options) override {
    return state_.fetch_add(0x9e3779b97f4a7c15ull) / 7919 % options.size();
  }

 private:
  std::atomic<std::uint64_t> state_{1};
};

}  // namespace

TEST_CASE("results are the same wherever ops run, under every policy and engine") {
  for_each_engine([](Runtime& runtime, const Device&, const Device&) {
    std::vector<Device> anywheres = {runtime.anywhere()};
    for (const char* name : {"nearest", "round_robin", "fixed:socket0", "late", "heft"})
      anywheres.push_back(runtime.anywhere(std::shared_ptr(make_placement(name))));
    anywheres.push_back(runtime.anywhere(std::make_shared<RandomPlacement>()));
    for (const Device& anywhere : anywheres) {
      CHECK(anywhere.is_anywhere());
      const auto x = runtime.uniform({64, 64}, anywhere, 1),
                 y = runtime.uniform({64, 64}, anywhere, 2);
      auto sum = anywhere.matmul(x, y);
      for (int i = 0; i < 20; ++i) sum = anywhere.matmul(sum, y);
      const auto there = runtime.socket(0);
      auto expected = there.matmul(x, y);
      for (int i = 0; i < 20; ++i) expected = there.matmul(expected, y);
      const auto reached = sum.to_host(), wanted = expected.to_host();
      for (std::size_t i = 0; i < reached.size(); ++i)
        REQUIRE(reached[i] == Approx(wanted[i]).epsilon(1e-4).margin(1e-4));
    }
  });
}

TEST_CASE("what is anywhere keeps the promises of a submission") {
  for_each_engine([](Runtime& runtime, const Device&, const Device&) {
    const Device anywhere = runtime.anywhere();
    const auto x = runtime.from_host(std::vector<float>(16, 1.0f), {16});
    // Scalars with a life of their own, failures, order behind a future, an empty handle.
    const std::string text = "short";
    const auto seen = std::make_shared<std::string>();
    anywhere.run("says", [text, seen](Cpu&) { *seen = text; }).wait();
    CHECK(*seen == "short");
    Promise begin("begin");
    const Future behind = anywhere.run(
        "behind", [](Cpu&) {}, after(begin.future()));
    CHECK_FALSE(behind.is_settled());
    begin.fulfil();
    behind.wait();
    const Future failed = anywhere.run(
        "fails", [](Cpu&, InOut<float>) { throw std::runtime_error("on purpose"); }, inout(x));
    CHECK_THROWS_WITH(failed.wait(), Catch::Matchers::Contains("on purpose"));
    CHECK_THROWS_AS(anywhere.submit(kernels::fill(), 1.0f, out(Tensor<float>())), UsageError);
    anywhere.submit(kernels::fill(), 2.0f, out(x)).wait();
    CHECK(x.to_host()[3] == 2);
    CHECK_THROWS_AS(runtime.anywhere(nullptr), UsageError);
  });
}

TEST_CASE("devices of unlike speed get work by their speed") {
  // A core of at most 0.1 TFLOP/s, and GPUs of 1 and 2.
  Runtime runtime(simulated("1 socket x 1 core, 2 gpus", "gpu1.flops=2"));
  const Device anywhere = runtime.anywhere();
  constexpr int kOps = 400;
  std::vector<Tensor<float>> data;
  for (int i = 0; i < kOps; ++i)
    data.push_back(runtime.from_host(std::vector<float>(4, 0.0f), {4}));
  const double took = seconds_of(runtime, [&] {
    for (const auto& each : data) anywhere.submit(work, 1e10, inout(each));
  });
  for (const auto& each : data) CHECK(each.to_host()[0] == 1);
  auto counts = ops_by_actor(runtime);
  CHECK(counts["gpu1"] > 1.8 * static_cast<double>(counts["gpu0"]));
  CHECK(counts["gpu1"] < 2.2 * static_cast<double>(counts["gpu0"]));
  // The speeds' sum is the bound.
  const double bound = kOps * 1e10 / (1e12 + 2e12 + 1e11);
  WARN("0.01 s ops on a core and two unlike GPUs: " << bound / took << " of the sum of speeds");
  CHECK(bound / took >= 0.85);
}

TEST_CASE("an op goes where its data are if bringing them takes longer than running it there") {
  Runtime runtime(simulated("1 socket x 1 core, 2 gpus"));
  const Device anywhere = runtime.anywhere();
  const auto large = runtime.uniform({1 << 20}, runtime.gpu(1));
  runtime.wait_idle();
  runtime.tracer()->clear();
  for (int i = 0; i < 10; ++i) anywhere.submit(work, 1e6, inout(large));
  runtime.wait_idle();
  CHECK(ops_by_actor(runtime)["gpu1"] == 10);
}

TEST_CASE("placement comes near the best of all in virtual time") {
  std::mt19937_64 random(11);
  double sum = 0, worst = 0;
  // A simulation has one thread, in which TSan sees nothing.
  constexpr int kPrograms = fewer_under_tsan(8, 1);
  for (int p = 0; p < kPrograms; ++p) {
    const std::size_t ops = 4 + random() % 3;
    std::vector<double> flops;
    std::vector<std::pair<std::size_t, std::size_t>> reads;
    for (std::size_t i = 0; i < ops; ++i) {
      flops.push_back(1e8 * static_cast<double>(1 + random() % 10));
      reads.emplace_back(random() % (i + 1), i);
    }
    // Its own runtime each: what is learnt is not carried over.
    auto run = [&](const std::function<Device(Runtime&, std::size_t)>& device, Runtime& runtime) {
      std::vector<Tensor<float>> data;
      for (std::size_t i = 0; i < ops; ++i)
        data.push_back(runtime.from_host(std::vector<float>(1 << 16, 1.0f), {1 << 16}));
      runtime.wait_idle();
      return seconds_of(runtime, [&] {
        for (std::size_t i = 0; i < ops; ++i) {
          const auto [from, to] = reads[i];
          if (from == to)
            device(runtime, i).submit(work, flops[i], inout(data[to]));
          else
            device(runtime, i).submit(join, flops[i], in(data[from]), inout(data[to]));
        }
      });
    };
    auto options = simulated("1 socket x 1 core, 2 gpus", "gpu1.flops=2");
    options.trace = false;
    double best = std::numeric_limits<double>::max(), reached = 0;
    {
      Runtime runtime(options);
      std::size_t ways = 1;
      for (std::size_t i = 0; i < ops; ++i) ways *= 3;
      for (std::size_t way = 0; way < ways; ++way)
        best = std::min(best, run(
                                  [&](Runtime& on, std::size_t i) {
                                    std::size_t rest = way;
                                    for (std::size_t k = 0; k < i; ++k) rest /= 3;
                                    return on.devices()[rest % 3];
                                  },
                                  runtime));
    }
    {
      Runtime runtime(options);
      reached = run([](Runtime& on, std::size_t) { return on.anywhere(); }, runtime);
    }
    sum += reached / best;
    worst = std::max(worst, reached / best);
  }
  WARN("mean " << sum / kPrograms << ", worst " << worst << " x the best placement");
  if (kPrograms > 1) CHECK(sum / kPrograms <= 1.15);
  CHECK(worst <= 1.5);
}

TEST_CASE("a device that becomes ten times as slow in mid-run does little harm if ops bind late") {
  constexpr int kOps = 300;
  // The makespan if `policy` places, from op number `from` on gpu0 is ten times as slow.
  auto run = [](const char* policy) {
    std::atomic<int> begun{0};
    RuntimeOptions options = simulated("1 socket x 1 core, 2 gpus");
    options.emulated->delay = [&begun](const LaneOp& op) {
      if (op.name != "work") return std::chrono::nanoseconds(0);
      const bool is_slow = ++begun > kOps / 3 && op.lane.starts_with("gpu0");
      return std::chrono::nanoseconds(is_slow ? 9'000'000 : 0);
    };
    Runtime runtime(std::move(options));
    const Device where = runtime.anywhere(std::shared_ptr(make_placement(policy)));
    std::vector<Tensor<float>> data;
    for (int i = 0; i < kOps; ++i)
      data.push_back(runtime.from_host(std::vector<float>(4, 0.0f), {4}));
    const double took = seconds_of(runtime, [&] {
      for (const auto& each : data) where.submit(work, 1e9, inout(each));
    });
    for (const auto& each : data) CHECK(each.to_host()[0] == 1);
    return took;
  };
  // Knowing it: a third at the speed of two, the rest on gpu1 with a tenth of gpu0 and of a core.
  const double known = 1e-3 * (kOps / 3.0 / 2.0 + 2.0 * kOps / 3.0 / 1.1);
  const double late = run("late"), early = run("earliest_finish");
  WARN("late " << late / known << " x, early " << early / known << " x the makespan of who knew");
  CHECK(late <= 1.3 * known);
  CHECK(early > late);
}

TEST_CASE("ops that bind late have futures, order and failures as all others") {
  for_each_engine([](Runtime& runtime, const Device& device, const Device&) {
    for (const char* name : {"late", "heft", "auto"}) {
      const Device late = runtime.anywhere(std::shared_ptr(make_placement(name)));
      const auto x = runtime.from_host(std::vector<float>(16, 0.0f), {16});
      std::vector<Future> futures;
      for (int i = 0; i < 200; ++i) {
        futures.push_back(late.submit(kernels::fill(), static_cast<float>(i), out(x)));
        if (i % 50 == 0) CHECK(x.to_host()[1] == static_cast<float>(i));
      }
      for (const Future& future : futures) future.wait();
      device.submit(kernels::fill(), -1.0f, out(x));
      CHECK(x.to_host()[15] == -1);
      const Future failed = late.run(
          "fails", [](Cpu&, InOut<float>) { throw std::runtime_error("on purpose"); }, inout(x));
      CHECK_THROWS_WITH(failed.wait(), Catch::Matchers::Contains("on purpose"));
      runtime.wait_idle();  // the gate lets an op out a moment after it has gone through
      CHECK(runtime.in_flight() == 0);
    }
  });
}

TEST_CASE("ops that wait for the program keep no others from their devices") {
  for (const char* name : {"late", "heft"}) {
    Runtime runtime(simulated("1 socket x 1 core, 2 gpus"));
    const Device where = runtime.anywhere(std::shared_ptr(make_placement(name)));
    const auto x = runtime.from_host(std::vector<float>(4, 0.0f), {4});
    const auto y = runtime.from_host(std::vector<float>(4, 0.0f), {4});
    Promise begin("begin");
    std::vector<Future> held;
    // One behind the promise itself, some behind what stands for it and others, the rest behind
    // what those will have written.
    held.push_back(where.submit(work, 1e6, inout(x), after(begin.future())));
    for (int i = 0; i < 6; ++i)
      held.push_back(where.run(
          "held", [](Cpu&) {}, after(when_all({begin.future()}))));
    for (int i = 0; i < 20; ++i) held.push_back(where.submit(work, 1e6, inout(x)));
    for (int i = 0; i < 20; ++i) where.submit(work, 1e6, inout(y)).wait();
    CHECK(y.to_host()[0] == 20);
    for (const Future& future : held) CHECK_FALSE(future.is_settled());
    begin.fulfil();
    CHECK(x.to_host()[0] == 21);
  }
}

TEST_CASE("a plan of the window beats placing ops as they come") {
  // A long chain that begins behind many short ops: who looks ahead begins it first.
  auto run = [](const char* policy) {
    Runtime runtime(simulated("1 socket x 1 core, 2 gpus", "gpu1.flops=4"));
    const Device where = runtime.anywhere(std::shared_ptr(make_placement(policy)));
    std::vector<Tensor<float>> data;
    for (int i = 0; i < 41; ++i)
      data.push_back(runtime.from_host(std::vector<float>(4, 0.0f), {4}));
    runtime.wait_idle();
    const double took = seconds_of(runtime, [&] {
      for (int i = 0; i < 40; ++i)
        where.submit(work, 1e10, inout(data[static_cast<std::size_t>(i)]));
      for (int i = 0; i < 20; ++i) where.submit(work, 2e10, inout(data[40]));
    });
    CHECK(data[40].to_host()[0] == 20);
    for (int i = 0; i < 40; ++i) CHECK(data[static_cast<std::size_t>(i)].to_host()[0] == 1);
    return took;
  };
  const double planned = run("heft"), early = run("earliest_finish"), by_itself = run("auto");
  // The sum of the speeds, 5.1 TFLOP/s with the core, and the chain on the fast GPU.
  const double bound = std::max(80e10 / 5.1e12, 40e10 / 4e12);
  WARN("heft " << planned / bound << ", earliest finish " << early / bound << " x the bound");
  CHECK(planned <= 1.15 * bound);
  CHECK(planned < early);
  CHECK(by_itself <= 1.2 * bound);  // its ops are long; the first ones go before that is known
}

namespace {

// Leaves everything out.
class NoPlan final : public PlacementPolicy {
 public:
  [[nodiscard]] std::string name() const override { return "none"; }
  std::size_t choose(std::span<const PlacementOption>) override { return 0; }
  [[nodiscard]] bool binds_late() const override { return true; }
  [[nodiscard]] std::size_t plans_ahead() const override { return 4; }
};

}  // namespace

TEST_CASE("a policy that plans nothing holds nothing up") {
  Runtime runtime(simulated("1 socket x 1 core, 2 gpus"));
  const Device where = runtime.anywhere(std::make_shared<NoPlan>());
  const auto x = runtime.from_host(std::vector<float>(4, 0.0f), {4});
  for (int i = 0; i < 30; ++i) where.submit(work, 1e6, inout(x));
  CHECK(x.to_host()[0] == 30);
}

TEST_CASE("ops of higher priority go first, on a lane and in the window") {
  for (const char* name : {"socket", "heft"}) {
    RuntimeOptions options = simulated("1 socket x 1 core");
    options.gpus = GpuMode::None;
    Runtime runtime(std::move(options));
    const Device where = std::string(name) == "socket"
                             ? runtime.socket(0)
                             : runtime.anywhere(std::shared_ptr(make_placement(name)));
    std::vector<int> order;
    Promise begin("begin");
    const auto x = runtime.from_host(std::vector<float>(4, 0.0f), {4});
    // Behind one op that takes a while all others become ready.
    const bool is_socket = std::string(name) == "socket";
    if (!is_socket) begin.fulfil();
    const Future first = is_socket ? where.submit(work, 1e9, inout(x), after(begin.future()))
                                   : where.submit(work, 1e9, inout(x));
    auto add = [&](Priority priority, int number) {
      where.with(priority).run(
          "note", [&order, number](Cpu&) { order.push_back(number); }, after(first));
    };
    add(Priority::Low, 5);
    for (int i = 0; i < 2; ++i) add(Priority::Normal, 3 + i);
    for (int i = 0; i < 2; ++i) add(Priority::High, 1 + i);
    if (is_socket) begin.fulfil();
    runtime.wait_idle();
    REQUIRE(order.size() == 5);
    if (is_socket) {
      CHECK(order == std::vector<int>{1, 2, 3, 4, 5});
      continue;
    }
    // The first and one more were given to the device at once; the rest waited in the window.
    auto turn = [&](int number) { return std::find(order.begin(), order.end(), number); };
    CHECK(turn(1) < turn(4));
    CHECK(turn(2) < turn(4));
    CHECK(turn(1) < turn(2));
  }
}

TEST_CASE("late ops hold no device while they wait behind copies of older ones") {
  RuntimeOptions options;
  options.machine = parse_machine("1 socket x 2 cores, 2 gpus");
  options.gpus = GpuMode::Emulated;
  options.watchdog = std::chrono::seconds(20);
  const Runtime runtime(std::move(options));
  const Device lates[] = {runtime.anywhere(std::shared_ptr(make_placement("late"))),
                          runtime.anywhere(std::shared_ptr(make_placement("heft")))};
  const auto x = runtime.from_host(std::vector<float>(64, 1.0f), {64});
  // Each is queued, with a copy to the host behind it that waits in turn.
  for (int round = 0; round < 100; ++round) {
    const Device& late = lates[round % 2];
    std::vector<HostArray<float>> results;
    for (int i = 0; i < 60; ++i) {
      const auto y = runtime.zeros({64}, runtime.socket(0));
      late.submit(join, 1e3, in(x), inout(y));
      results.push_back(y.to_host());
    }
    for (const auto& result : results) REQUIRE(result[0] == 1);
  }
}

TEST_CASE("late ops that nothing can run fail and hold up no others") {
  RuntimeOptions options = simulated("1 socket x 1 core, 2 gpus");
  options.memory = "*=64KB";
  Runtime runtime(std::move(options));
  const Device late = runtime.anywhere(std::shared_ptr(make_placement("late")));
  const auto x = runtime.from_host(std::vector<float>(4, 0.0f), {4});
  const auto large = runtime.tensor<float>({1 << 20});
  std::vector<Future> failed;
  for (int i = 0; i < 5; ++i) {
    failed.push_back(late.submit(kernels::fill(), 1.0f, out(large)));
    // A kernel that lives no longer than its submission.
    late.submit(Kernel("passing").cpu([](Cpu&, InOut<float> y) { y[0] += 1; }), inout(x));
  }
  for (const Future& future : failed)
    CHECK_THROWS_WITH(future.wait(), Catch::Matchers::Contains("out of memory"));
  CHECK(x.to_host()[0] == 5);
}

TEST_CASE("what is recorded anywhere is in the plan, under every policy") {
  for (const char* name : {"auto", "earliest_finish", "late"}) {
    Runtime runtime(simulated("1 socket x 1 core, 2 gpus"));
    const Device where = runtime.anywhere(std::shared_ptr(make_placement(name)));
    const auto x = runtime.from_host(std::vector<float>(4, 0.0f), {4});
    const Plan plan = runtime.record([&] {
      for (int i = 0; i < 3; ++i) where.submit(work, 1e6, inout(x));
    });
    CHECK(plan.size() >= 3);
    plan.replay();
    plan.replay();
    CHECK(x.to_host()[0] == 9);
  }
}

TEST_CASE("a lost device gets nothing more") {
  for (const bool simulate : {false, true}) {
    RuntimeOptions options = simulated("1 socket x 1 core, 2 gpus");
    options.simulate = simulate;
    options.gpus = GpuMode::Emulated;
    options.emulated->flops_per_second = 0;
    if (!simulate) options.simulated_scale.reset();
    Runtime runtime(std::move(options));
    runtime.lose(runtime.gpu(0));
    const Device turns = runtime.anywhere(std::shared_ptr(make_placement("round_robin")));
    const auto x = runtime.from_host(std::vector<float>(4, 0.0f), {4});
    for (int i = 0; i < 20; ++i) turns.submit(work, 1.0, inout(x));
    CHECK(x.to_host()[0] == 20);
  }
}

TEST_CASE("what was learnt is kept in a file, and a broken one is refused") {
  const std::string path = "anywhere_test_costs.json";
  std::remove(path.c_str());
  auto run = [&] {
    RuntimeOptions options = simulated("1 socket x 1 core, 2 gpus");
    options.run_costs = path;
    Runtime runtime(std::move(options));
    const auto x = runtime.from_host(std::vector<float>(4, 0.0f), {4});
    const Device anywhere = runtime.anywhere();
    for (int i = 0; i < 10; ++i) anywhere.submit(work, 1e9, inout(x));
    runtime.wait_idle();
    std::size_t runs = 0;
    Placer& placer = *runtime.fabric().placer.load();
    for (std::size_t m = 0; m < placer.costs().models().size(); ++m)
      for (const auto& point : placer.costs().of(*work.code(), m).points()) runs += point.runs;
    return runs;
  };
  CHECK(run() == 10);
  CHECK(run() == 20);
  std::ofstream(path) << "{\"weft_run_costs\": 1, \"kernels\": [{}]}";
  CHECK_THROWS_WITH(run(), Catch::Matchers::Contains(path));
  std::remove(path.c_str());
}

TEST_CASE("several threads place at once, also when memory is short") {
  RuntimeOptions options = simulated("2 sockets x 2 cores, 3 gpus");
  options.simulate = false;
  options.simulated_scale.reset();
  options.gpus = GpuMode::Emulated;
  options.emulated->flops_per_second = 0;
  options.emulated->memory_bytes_per_second = 0;
  options.emulated->memory_bytes = 8 << 10;
  options.trace = false;
  options.pin = false;
  Runtime runtime(std::move(options));
  const Device anywhere = runtime.anywhere();
  constexpr int kThreads = 3, kTensors = 10, kRounds = 100;
  std::vector<Tensor<float>> data;
  for (int i = 0; i < kThreads * kTensors; ++i)
    data.push_back(runtime.from_host(std::vector<float>(256, 0.0f), {256}));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int r = 0; r < kRounds; ++r)
        for (int i = 0; i < kTensors; ++i)
          anywhere.submit(work, 1.0, inout(data[static_cast<std::size_t>(t * kTensors + i)]));
    });
  for (auto& thread : threads) thread.join();
  for (const auto& each : data) CHECK(each.to_host()[0] == kRounds);
}
