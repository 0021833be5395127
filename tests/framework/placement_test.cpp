#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "framework/device_timeline.hpp"
#include "framework/fabric.hpp"
#include "framework/kernel_code.hpp"
#include "framework/placement.hpp"
#include "framework/run_costs.hpp"
#include "framework/run_sampler.hpp"
#include "support/catch.hpp"

using namespace weft;

TEST_CASE("costs are learnt by size, and young runs count more") {
  KernelCosts costs;
  CHECK_FALSE(costs.seconds(100));
  costs.note(1000, 1e-3);
  CHECK(costs.seconds(1000).value() == Approx(1e-3));
  CHECK(costs.seconds(4000).value() == Approx(4e-3));  // the only rate there is
  CHECK(costs.seconds(10).value() == Approx(1e-5));
  // Larger ones are faster in proportion: a line in logarithms in between.
  costs.note(1e6, 0.1);
  const double between = costs.seconds(std::sqrt(1000.0 * 1e6)).value();
  CHECK(between == Approx(std::sqrt(1e-3 * 0.1)).epsilon(0.01));
  CHECK(costs.seconds(1e7).value() == Approx(1.0));

  // A device ten times as slow is found out within some ten runs.
  for (int i = 0; i < 100; ++i) costs.note(1000, 1e-3);
  for (int i = 0; i < 20; ++i) costs.note(1000, 1e-2);
  CHECK(costs.seconds(1000).value() > 9e-3);
  CHECK(costs.points().size() == 2);
  CHECK(costs.points()[0].runs == 121);
  CHECK(costs.points()[0].spread > 0);

  costs.note(1000, -1);
  costs.note(1000, std::nan(""));
  CHECK(costs.points()[0].runs == 121);
  costs.note(0, 1e-6);
  CHECK(costs.seconds(0).value() == Approx(1e-6));
  costs.note(1e300, 1);
  CHECK(costs.seconds(1e300).value() == Approx(1));
}

TEST_CASE("a few runs of each kernel and size are sampled, then one in many") {
  constexpr std::uint32_t kFirst = RunSampler::kFirst, kOneIn = RunSampler::kOneIn;
  std::vector<KernelCode> kernels(300);
  RunSampler sampler;
  auto sampled = [&](const KernelCode& code, double amount, std::uint32_t runs) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < runs; ++i) count += sampler.wants(code, amount);
    return count;
  };
  CHECK(sampled(kernels[0], 1000, 1) == 0);  // loads code
  CHECK(sampled(kernels[0], 1000, kFirst) == kFirst);
  CHECK(sampled(kernels[0], 1000, kOneIn) == 1);
  CHECK(sampled(kernels[0], 1023, 10 * kOneIn) == 10);  // the same power of two
  CHECK(sampled(kernels[0], 1024, 1 + kFirst) == kFirst);
  CHECK(sampled(kernels[1], 1000, 1 + kFirst) == kFirst);
  CHECK(sampled(kernels[1], std::nan(""), 1 + kFirst) == kFirst);
  // More kernels than there are slots: none is timed at each run.
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < 10 * kOneIn; ++i)
    for (const KernelCode& code : kernels) count += sampler.wants(code, 1);
  CHECK(count > 0);
  CHECK(count <= kernels.size() * (kFirst + 10));
}

TEST_CASE("what was learnt is kept for the same kernel, version and model only") {
  KernelCode first, second;
  first.name = second.name = "work";
  RunCosts costs({"cpu A", "gpu B"});
  costs.of(first, 0).note(1000, 1e-3);
  costs.of(first, 1).note(1000, 1e-5);
  const std::string text = costs.to_json();
  CHECK(text == costs.to_json());

  RunCosts same({"gpu B", "cpu A"});
  CHECK(same.take_json(text) == 0);
  CHECK(same.to_json() == text);  // nothing is lost though no kernel has turned up
  CHECK(same.of(second, 0).seconds(1000).value() == Approx(1e-5));
  CHECK(same.of(second, 1).seconds(1000).value() == Approx(1e-3));

  KernelCode newer;
  newer.name = "work";
  newer.version = 2;
  CHECK_FALSE(same.of(newer, 0).seconds(1000));

  RunCosts others({"gpu C"});
  CHECK(others.take_json(text) == 2);
  CHECK_FALSE(others.of(second, 0).seconds(1000));

  CHECK_THROWS_AS(others.take_json("{"), std::runtime_error);
  CHECK_THROWS_AS(others.take_json("{\"weft_run_costs\": 2}"), std::runtime_error);
  CHECK_THROWS_AS(others.take_json("[]"), std::runtime_error);
}

TEST_CASE("a device's timeline says when it can begin, and is corrected by what is under way") {
  DeviceTimeline one(1);
  CHECK(one.ready(5) == 5);
  CHECK(one.give(5, 0, 2) == 7);
  CHECK(one.ready(5) == 7);
  CHECK(one.give(5, 10, 1) == 11);  // its inputs come late: others may run meanwhile
  CHECK(one.ready(6) == 8);
  one.correct(6, 2);  // three seconds are to be done
  CHECK(one.ready(6) == 9);
  one.correct(11, 2);  // none of the two is done: it is late by all of their time
  CHECK(one.ready(11) == 14);
  one.correct(11, 2);
  CHECK(one.ready(11) == 14);
  one.correct(12, 0);
  CHECK(one.ready(12) == 12);

  DeviceTimeline three(3);
  for (int i = 0; i < 4; ++i) three.give(0, 0, 1 + i);
  CHECK(three.ready(0) == 2);  // the second ends first, the fourth runs behind the first
}

TEST_CASE("policies choose as their names say") {
  std::vector<Place> places(3);
  places[0].name = "socket0", places[1].name = "gpu0", places[2].name = "gpu1";
  std::vector<PlacementOption> options(3);
  for (std::size_t i = 0; i < 3; ++i) options[i].place = &places[i];
  options[0].run = 10, options[0].missing_bytes = 0;
  options[1].run = 1, options[1].ready = 8, options[1].missing_bytes = 100;
  options[2].run = 1, options[2].inputs = 6, options[2].missing_bytes = 200;
  CHECK(make_placement("earliest_finish")->choose(options) == 2);
  CHECK(make_placement("nearest")->choose(options) == 0);
  CHECK(make_placement("fixed:gpu0")->choose(options) == 1);
  CHECK(make_placement("fixed:gpu7")->choose(options) == 0);
  const auto turns = make_placement("round_robin");
  CHECK(turns->choose(options) == 0);
  CHECK(turns->choose(options) == 1);
  CHECK(turns->choose(options) == 2);
  CHECK(turns->choose(options) == 0);
  for (const char* name :
       {"auto", "earliest_finish", "heft", "late", "nearest", "round_robin", "fixed:gpu0"})
    CHECK(make_placement(name)->name() == name);
  CHECK_THROWS_WITH(make_placement("best"), Catch::Matchers::Contains("best") &&
                                                Catch::Matchers::Contains("earliest_finish"));
  CHECK_THROWS_AS(make_placement("fixed:"), DeviceError);
}

namespace {

// A small program on unlike devices, as a table of times.
struct SmallProgram {
  std::size_t devices = 0;
  std::vector<std::vector<double>> run;             // by op and device
  std::vector<std::vector<std::size_t>> producers;  // by op
  std::vector<double> copy;                         // of an op's result to another device
};

SmallProgram make_small(std::mt19937_64& random) {
  auto below = [&](std::uint64_t n) { return static_cast<std::size_t>(random() % n); };
  auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  SmallProgram made;
  made.devices = 2 + below(2);
  const std::size_t ops = 3 + below(6);
  std::vector<double> speed;
  for (std::size_t d = 0; d < made.devices; ++d) speed.push_back(between(1, 8));
  for (std::size_t op = 0; op < ops; ++op) {
    const double work = between(1, 10);
    std::vector<double> times;
    for (std::size_t d = 0; d < made.devices; ++d)
      times.push_back(work / speed[d] * between(0.7, 1.4));
    made.run.push_back(times);
    std::vector<std::size_t> before;
    for (std::size_t other = 0; other < op; ++other)
      if (below(3) == 0) before.push_back(other);
    made.producers.push_back(before);
    made.copy.push_back(between(0, 1.5));
  }
  return made;
}

// When all is done, in the order of submission, if `choose(op, options)` places it.
template <class Choose>
double makespan(const SmallProgram& program, Choose choose) {
  std::vector<double> free_at(program.devices);
  std::vector<double> end;
  std::vector<std::size_t> where;
  double last = 0;
  for (std::size_t op = 0; op < program.run.size(); ++op) {
    std::vector<PlacementOption> options(program.devices);
    for (std::size_t d = 0; d < program.devices; ++d) {
      options[d].ready = free_at[d];
      options[d].run = program.run[op][d];
      for (const std::size_t other : program.producers[op])
        options[d].inputs =
            std::max(options[d].inputs, end[other] + (where[other] == d ? 0 : program.copy[other]));
    }
    const std::size_t d = choose(op, options);
    where.push_back(d);
    end.push_back(free_at[d] = options[d].finish());
    last = std::max(last, end.back());
  }
  return last;
}

double best_makespan(const SmallProgram& program) {
  std::size_t ways = 1;
  for (std::size_t i = 0; i < program.run.size(); ++i) ways *= program.devices;
  double best = 1e300;
  for (std::size_t way = 0; way < ways; ++way) {
    std::size_t rest = way;
    best = std::min(best, makespan(program, [&](std::size_t, const auto&) {
                      const std::size_t d = rest % program.devices;
                      rest /= program.devices;
                      return d;
                    }));
  }
  return best;
}

}  // namespace

TEST_CASE("earliest finish comes near the best placement of small programs") {
  std::mt19937_64 random(3);
  EarliestFinishPlacement policy;
  double sum = 0, worst = 0;
  constexpr int kPrograms = 300;
  for (int i = 0; i < kPrograms; ++i) {
    const SmallProgram program = make_small(random);
    const double reached =
        makespan(program, [&](std::size_t, const auto& options) { return policy.choose(options); });
    const double ratio = reached / best_makespan(program);
    CHECK(ratio >= 1 - 1e-9);
    sum += ratio;
    worst = std::max(worst, ratio);
  }
  WARN("mean " << sum / kPrograms << ", worst " << worst << " x the best placement");
  CHECK(sum / kPrograms <= 1.15);
  CHECK(worst <= 1.8);  // without a look at what comes next
}

namespace {

// A program of many ops, each of which needs a few of those not long before it.
SmallProgram make_large(std::mt19937_64& random, std::size_t devices, std::size_t ops) {
  auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  SmallProgram made;
  made.devices = devices;
  std::vector<double> speed;
  for (std::size_t d = 0; d < devices; ++d) speed.push_back(between(1, 8));
  for (std::size_t op = 0; op < ops; ++op) {
    const double work = between(1, 10);
    made.run.emplace_back();
    for (std::size_t d = 0; d < devices; ++d)
      made.run.back().push_back(work / speed[d] * between(0.7, 1.4));
    std::vector<std::size_t> before;
    const std::size_t reach = std::min(op, 4 * devices);
    for (std::size_t i = random() % 4; reach > 0 && i > 0; --i)
      before.push_back(op - 1 - random() % reach);
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    made.producers.push_back(before);
    made.copy.push_back(between(0, 1.5));
  }
  return made;
}

// `count` ops of the program from those in `left` on, as a policy that plans sees them: op i writes
// tensor i. `left` rises.
PlacementWindow window_of(const SmallProgram& program, const std::vector<std::size_t>& left,
                          std::size_t count, const std::vector<double>& free_at,
                          const std::vector<double>& end, const std::vector<std::size_t>& where) {
  PlacementWindow window;
  for (std::size_t d = 0; d < program.devices; ++d)
    window.devices.push_back({nullptr, {free_at[d]}});
  for (std::size_t from = 0; from < program.devices; ++from)
    for (std::size_t to = 0; to < program.devices; ++to) {
      window.latency.push_back(0);
      window.seconds_per_byte.push_back(from == to ? 0 : 1e-6);
    }
  for (std::size_t op = 0; op < program.run.size(); ++op) {
    const auto bytes = static_cast<std::size_t>(program.copy[op] * 1e6);
    window.tensors.push_back({bytes, std::vector<double>(program.devices)});
    for (std::size_t d = 0; d < program.devices && end[op] > 0; ++d)
      window.tensors.back().there[d] = end[op] + (where[op] == d ? 0 : 1e-6 * double(bytes));
  }
  for (std::size_t i = 0; i < std::min(count, left.size()); ++i) {
    PlacementWindow::Op op;
    op.run = program.run[left[i]];
    for (const std::size_t producer : program.producers[left[i]])
      op.arguments.push_back({static_cast<std::uint32_t>(producer), true, false});
    op.arguments.push_back({static_cast<std::uint32_t>(left[i]), false, true});
    window.ops.push_back(op);
  }
  return window;
}

// When all is done if each time the first op of a plan over the next `ahead` ones is given away.
double planned_makespan(const SmallProgram& program, std::size_t ahead) {
  const std::size_t ops = program.run.size();
  std::vector<double> free_at(program.devices), end(ops);
  std::vector<std::size_t> where(ops), left(ops);
  for (std::size_t i = 0; i < ops; ++i) left[i] = i;
  while (!left.empty()) {
    const PlacementWindow window = window_of(program, left, ahead, free_at, end, where);
    const auto planned = plan_by_heft(window);
    REQUIRE(planned.size() == window.ops.size());
    const std::size_t op = left[planned[0].op], d = planned[0].device;
    double inputs = 0;
    for (const std::size_t other : program.producers[op]) {
      REQUIRE(end[other] > 0);  // what it needs comes before it
      inputs = std::max(inputs, end[other] + (where[other] == d ? 0 : program.copy[other]));
    }
    where[op] = d;
    end[op] = free_at[d] = std::max(free_at[d], inputs) + program.run[op][d];
    left.erase(left.begin() + planned[0].op);
  }
  return *std::max_element(end.begin(), end.end());
}

// HEFT of the whole program, known beforehand.
double heft_makespan(const SmallProgram& program) {
  std::vector<std::size_t> all(program.run.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::vector<double> nothing(all.size());
  const PlacementWindow window =
      window_of(program, all, all.size(), std::vector<double>(program.devices), nothing,
                std::vector<std::size_t>(all.size()));
  double last = 0;
  for (const PlannedOp& planned : plan_by_heft(window))
    last = std::max(last, planned.begin + window.ops[planned.op].run[planned.device]);
  return last;
}

}  // namespace

TEST_CASE("plans of a window come near the best placement of small programs") {
  std::mt19937_64 random(3);
  double sum = 0, worst = 0;
  constexpr int kPrograms = 300;
  for (int i = 0; i < kPrograms; ++i) {
    const SmallProgram program = make_small(random);
    const double ratio = planned_makespan(program, 8) / best_makespan(program);
    sum += ratio;
    worst = std::max(worst, ratio);
  }
  WARN("mean " << sum / kPrograms << ", worst " << worst << " x the best placement");
  CHECK(sum / kPrograms <= 1.15);
  CHECK(worst <= 1.5);
}

TEST_CASE("plans of 64 ops at a time come near HEFT over the whole of larger programs") {
  std::mt19937_64 random(5);
  double sum = 0, early = 0;
  int programs = 0;
  EarliestFinishPlacement earliest;
  for (const std::size_t devices : {3u, 6u, 10u})
    for (int i = 0; i < 3; ++i, ++programs) {
      const SmallProgram program = make_large(random, devices, 150);
      const double heft = heft_makespan(program);
      sum += planned_makespan(program, 64) / heft;
      early += makespan(program, [&](std::size_t,
                                     const auto& options) { return earliest.choose(options); }) /
               heft;
    }
  WARN("mean " << sum / programs << " x HEFT, earliest finish " << early / programs);
  CHECK(sum / programs <= 1.10);
  CHECK(sum < early);
}

TEST_CASE("a slow device gets one of the many ops that wait, and none of few") {
  PlacementWindow window;
  window.devices.resize(2);
  for (auto& device : window.devices) device.free_at = {0};
  window.latency.assign(4, 0);
  window.seconds_per_byte.assign(4, 0);
  window.ops.resize(8);
  for (auto& op : window.ops) op.run = {1, 50};
  const auto given_to_slow = [&](std::size_t waiting) {
    window.waiting = waiting;
    const auto planned = plan_by_heft(window);
    CHECK(planned.size() == window.ops.size());
    return std::count_if(planned.begin(), planned.end(),
                         [](const PlannedOp& each) { return each.device == 1; });
  };
  CHECK(given_to_slow(0) == 0);
  CHECK(given_to_slow(40) == 0);
  CHECK(given_to_slow(100) == 1);
  for (std::uint32_t op = 1; op < 8; ++op) window.ops[op].after = {op - 1};
  CHECK(given_to_slow(100) == 0);  // a chain waits for it
}

TEST_CASE("by itself, a policy plans long ops and sends short ones") {
  AutoPlacement policy;
  const auto waits = [&](std::vector<double> runs) {
    std::vector<PlacementOption> options(runs.size());
    for (std::size_t i = 0; i < runs.size(); ++i) options[i].run = runs[i];
    return policy.lets_wait(options);
  };
  CHECK(waits({1e-3, 2e-4}));
  CHECK_FALSE(waits({1e-3, 2e-5}));  // on the fast one it is short
  CHECK_FALSE(waits({1e-3}));        // nothing to choose
  CHECK_FALSE(waits({}));
}

TEST_CASE("a plan keeps the order that data ask for, and puts priorities first") {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  PlacementWindow window;
  window.devices = {{nullptr, {0}}, {nullptr, {0}}};
  window.latency = {0, 10, 10, 0};
  window.seconds_per_byte = {0, 0, 0, 0};
  window.tensors = {{4, {0, 0}}, {4, {0, 0}}, {4, {kNever, kNever}}};
  auto op = [](double here, double there, std::vector<PlacementWindow::Argument> arguments) {
    PlacementWindow::Op made;
    made.run = {here, there};
    made.arguments = std::move(arguments);
    return made;
  };
  // A reader, then who overwrites what it reads, then who reads that; an op that comes behind all.
  window.ops = {op(4, 4, {{0, true, false}}), op(1, 1, {{0, false, true}}),
                op(1, 1, {{0, true, true}}), op(1, 1, {})};
  window.ops[3].after = {2};
  auto planned = plan_by_heft(window);
  REQUIRE(planned.size() == 4);
  for (std::uint32_t i = 0; i < 4; ++i) CHECK(planned[i].op == i);
  CHECK(planned[1].begin >= 4);
  CHECK(planned[2].begin == planned[1].begin + 1);
  CHECK(planned[2].device == planned[1].device);  // moving it takes longer
  CHECK(planned[3].begin >= planned[2].begin + 1);

  // What nothing can run is left out, and what needs it, and what has no value.
  window.ops = {op(kNever, kNever, {{0, false, true}}), op(1, 1, {{0, true, false}}),
                op(1, 1, {{2, true, false}}), op(kNever, 1, {{1, true, false}})};
  planned = plan_by_heft(window);
  REQUIRE(planned.size() == 1);
  CHECK(planned[0].op == 3);
  CHECK(planned[0].device == 1);

  // The last of equal ones goes first, with what it needs.
  window.ops.assign(6, op(1, kNever, {}));
  window.ops[4].arguments = {{1, false, true}};
  window.ops[5].arguments = {{1, true, false}};
  window.ops[5].priority = 1;
  planned = plan_by_heft(window);
  REQUIRE(planned.size() == 6);
  CHECK(planned[0].op == 4);
  CHECK(planned[1].op == 5);
}
