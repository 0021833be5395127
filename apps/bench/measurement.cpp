#include "apps/bench/measurement.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "apps/bench/executor.hpp"
#include "apps/bench/process.hpp"
#include "apps/bench/statistics.hpp"
#include "apps/bench/weft_executor.hpp"
#include "apps/bench/work.hpp"
#include "framework/trace.hpp"

namespace weft::bench {
namespace {

constexpr std::uint32_t kWarmUpOps = 10'000;
constexpr double kEnoughSeconds = 2;  // no further repeats after this long

// One op handed over and waited for: so often at once, so often after a rest; then nothing for a
// while.
constexpr int kHandOvers = 5'000, kRests = 100;
constexpr std::chrono::milliseconds kIdle{500};

// The ladder of op durations, and how long a rung runs: Task Bench's method (Slaughter et al.,
// SC'20).
constexpr double kShortestNs = 64, kLongestNs = 5e6, kRungRatio = 1.8;
constexpr double kRungSeconds = 0.06;
constexpr std::uint32_t kFewestSteps = 20, kMostSteps = 1000;

// Nanoseconds of one multiply-add of the op's kernel; before a system's threads are there.
double iteration_ns() {
  // Short, so that some of them are not interrupted even on a busy machine.
  constexpr std::uint64_t kIterations = 20'000;
  double best = 1e9;
  for (int i = 0; i < 500; ++i) {
    const Stopwatch watch;
    volatile double sink = multiply_adds(kIterations, 1.0);
    (void)sink;
    best = std::min(best, watch.seconds() * 1e9 / kIterations);
  }
  return best;
}

std::uint64_t iterations_for(double ns, double each_ns) {
  return ns > 0 ? std::max<std::uint64_t>(1, static_cast<std::uint64_t>(ns / each_ns)) : 0;
}

WeftExecutor* ours(Executor& executor) {
  return dynamic_cast<WeftExecutor*>(&executor);
}

double run_once(Executor& executor, const OpGraph& graph) {
  const double seconds = executor.run(graph);
  WeftExecutor* weft = ours(executor);
  if (weft && weft->runtime().tracer()) weft->runtime().tracer()->clear();
  return seconds;
}

void check_order(Executor& executor, const OpGraph& graph) {
  OrderCheck check(graph);
  work.check = &check;
  executor.run(graph);
  work.check = nullptr;
  if (!check.is_right())
    throw std::runtime_error("not every op of graph " + graph.pattern() +
                             " ran once and behind those it follows");
}

Figures measure_dispatch(Executor& executor, const Measurement& wanted, const OpGraph& graph) {
  const OpGraph warm_up(wanted.graph, wanted.width, std::min(wanted.ops, kWarmUpOps));
  if (wanted.check) check_order(executor, warm_up);
  run_once(executor, warm_up);
  const std::size_t before = resident_bytes();
  const Stopwatch all;
  std::vector<double> ns, cpu;
  while (ns.empty() || (ns.size() < wanted.repeats && all.seconds() < kEnoughSeconds)) {
    const double used = processor_seconds();
    ns.push_back(run_once(executor, graph) * 1e9 / wanted.ops);
    cpu.push_back((processor_seconds() - used) * 1e9 / wanted.ops);
  }
  return {{"ns_per_op", ns},
          {"cpu_ns_per_op", cpu},
          {"rss_before_bytes", {static_cast<double>(before)}},
          {"peak_rss_bytes", {static_cast<double>(peak_resident_bytes())}}};
}

struct Rung {
  double ns, efficiency;
};

// Where the ladder crosses `efficiency` for good, interpolated over the logarithm of the duration.
std::vector<double> crossing(const std::vector<Rung>& ladder, double efficiency) {
  std::size_t i = ladder.size();
  while (i > 0 && ladder[i - 1].efficiency >= efficiency) --i;
  if (i == ladder.size()) return {};
  if (i == 0) return {ladder[0].ns};
  const Rung &below = ladder[i - 1], &above = ladder[i];
  const double share = (efficiency - below.efficiency) / (above.efficiency - below.efficiency);
  return {below.ns * std::pow(above.ns / below.ns, share)};
}

Figures measure_metg(Executor& executor, const Measurement& wanted, double each_ns) {
  std::vector<Rung> ladder;
  int good = 0;
  for (double aim = kShortestNs; aim <= kLongestNs && good < 2; aim *= kRungRatio) {
    work.iterations = iterations_for(aim, each_ns);
    const double ns = static_cast<double>(work.iterations) * each_ns;
    const std::uint32_t width = OpGraph(wanted.graph, wanted.width, 1).width();
    const double step_seconds = ns * 1e-9 * width / wanted.threads;
    const auto steps = static_cast<std::uint32_t>(
        std::clamp<double>(kRungSeconds / step_seconds, kFewestSteps, kMostSteps));
    const OpGraph graph(wanted.graph, wanted.width, steps * width);
    std::vector<double> seconds;
    for (std::uint32_t i = 0; i < wanted.repeats; ++i) seconds.push_back(run_once(executor, graph));
    const double efficiency = ns * 1e-9 * graph.ops() / (wanted.threads * median(seconds));
    ladder.push_back({ns, efficiency});
    good = efficiency >= 0.85 ? good + 1 : 0;
  }
  Figures figures{{"d50_ns", crossing(ladder, 0.5)}, {"d80_ns", crossing(ladder, 0.8)}};
  for (const Rung& rung : ladder) {
    figures["rung_ns"].push_back(rung.ns);
    figures["rung_efficiency"].push_back(rung.efficiency);
  }
  return figures;
}

Figures measure_hand_off(Executor& executor) {
  const OpGraph one("chain", 1, 1);
  const auto hand_over = [&](int times, std::chrono::microseconds rest) {
    std::vector<double> ns;
    for (int i = 0; i < times; ++i) {
      if (rest.count()) std::this_thread::sleep_for(rest);
      ns.push_back(executor.run(one) * 1e9);
    }
    return median(ns);
  };
  hand_over(kHandOvers / 10, {});
  const double recent = hand_over(kHandOvers, {});
  const double rested = hand_over(kRests, std::chrono::milliseconds(3));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const double used = processor_seconds();
  const Stopwatch watch;
  std::this_thread::sleep_for(kIdle);
  const double idle = (processor_seconds() - used) / watch.seconds();
  return {{"round_trip_ns", {recent}}, {"after_idle_ns", {rested}}, {"idle_cores", {idle}}};
}

Figures measure_memory(Executor& executor, const Measurement& wanted, const OpGraph& graph) {
  run_once(executor, OpGraph(wanted.graph, wanted.width, std::min(wanted.ops, 1000u)));
  const std::size_t before = resident_bytes();
  std::size_t after = 0;
  if (WeftExecutor* weft = ours(executor)) {
    Promise gate("gate");
    const Future open = gate.future();
    weft->prepare(graph);
    weft->submit(graph, &open);
    after = resident_bytes();
    gate.fulfil();
    weft->wait();
  } else {
    executor.run(graph);  // nothing holds a peer's ops back: the most it had at any time
    after = peak_resident_bytes();
  }
  const double grown = static_cast<double>(after) - static_cast<double>(before);
  return {{"bytes_per_op", {grown / wanted.ops}},
          {"peak_rss_bytes", {static_cast<double>(peak_resident_bytes())}}};
}

}  // namespace

Figures measure(const Measurement& wanted) {
  if (wanted.aim == Aim::Matmul) return measure_matmul(wanted);
  if (wanted.aim == Aim::Overlap) return measure_overlap(wanted);
  const double each_ns = iteration_ns();
  work.iterations = iterations_for(wanted.op_ns, each_ns);
  ExecutorSetup setup;
  setup.threads = wanted.threads;
  setup.trace = wanted.trace;
  setup.admission = wanted.admission;
  if (wanted.aim == Aim::Memory) setup.admission = std::int64_t{wanted.ops} + 1024;
  const auto executor = make_executor(wanted.system, setup);
  switch (wanted.aim) {
    case Aim::Dispatch:
      return measure_dispatch(*executor, wanted, OpGraph(wanted.graph, wanted.width, wanted.ops));
    case Aim::Metg:
      return measure_metg(*executor, wanted, each_ns);
    case Aim::HandOff:
      return measure_hand_off(*executor);
    case Aim::Memory:
      return measure_memory(*executor, wanted, OpGraph(wanted.graph, wanted.width, wanted.ops));
    default:
      break;
  }
  return {};
}

}  // namespace weft::bench
