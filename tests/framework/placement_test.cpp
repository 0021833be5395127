#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "framework/device_timeline.hpp"
#include "framework/fabric.hpp"
#include "framework/kernel_code.hpp"
#include "framework/placement.hpp"
#include "framework/run_costs.hpp"
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
  CHECK(one.give(5, 10, 1) == 11);  // its inputs come late
  one.correct(6, 2);
  CHECK(one.ready(6) == 11);
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
  for (const char* name : {"earliest_finish", "nearest", "round_robin", "fixed:gpu0"})
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
