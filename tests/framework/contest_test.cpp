#include "framework/contest.hpp"

#include <deque>
#include <limits>
#include <random>

#include "support/catch.hpp"

using namespace weft;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Runs it with `late` trials under way at a time; returns how many there were.
template <class Time>
std::size_t run(Contest& contest, std::size_t late, const Time& time) {
  std::deque<std::size_t> open;
  std::size_t trials = 0;
  while (!contest.is_decided()) {
    const auto next = contest.next();
    if (next) {
      open.push_back(*next);
      ++trials;
    }
    if (next && open.size() < late) continue;
    REQUIRE_FALSE(open.empty());
    contest.took(open.front(), time(open.front()));
    open.pop_front();
  }
  return trials;
}

}  // namespace

TEST_CASE("the fastest wins, however late times come", "[contest]") {
  const std::vector<double> times{10, 12, 8, 9, 30, kNever};
  for (const std::size_t late : {1, 3, 100}) {
    Contest contest(times.size());
    const std::size_t trials = run(contest, late, [&](std::size_t c) { return times[c]; });
    CHECK(contest.winner() == 2);
    CHECK_FALSE(contest.next());
    CHECK(trials == 6 + 4 * 3);  // 10, 8 and 9 come near
  }
}

TEST_CASE("the usual one stays unless another is clearly faster", "[contest]") {
  Contest close(3);
  run(close, 2, [](std::size_t c) { return c == 1 ? 9.9 : 10.0; });
  CHECK(close.winner() == 0);
  Contest slow(3);  // far from the best at first
  run(slow, 2, [](std::size_t c) { return c == 1 ? 5.0 : 10.0; });
  CHECK(slow.winner() == 1);
  // A first time that was disturbed decides nothing.
  Contest disturbed(2);
  std::size_t calls = 0;
  run(disturbed, 1, [&](std::size_t c) { return calls++ == 0 ? 50.0 : c == 0 ? 10.0 : 11.0; });
  CHECK(disturbed.winner() == 0);
}

TEST_CASE("noise of a few per cent hides no large difference", "[contest]") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> noise(1, 1.05);
  for (int round = 0; round < 100; ++round) {
    Contest contest(20);
    run(contest, 4, [&](std::size_t c) { return noise(random) * (c == 13 ? 8 : 10); });
    REQUIRE(contest.winner() == 13);
  }
}

TEST_CASE("nothing to choose from, nobody who can, no wish to go on", "[contest]") {
  CHECK(Contest(0).is_decided());
  CHECK(Contest(1).is_decided());
  Contest broken(3);
  run(broken, 1, [](std::size_t) { return kNever; });
  CHECK(broken.winner() == 0);
  Contest alone(3);  // the usual one is the only one that can
  run(alone, 1, [](std::size_t c) { return c == 0 ? 10 : kNever; });
  CHECK(alone.winner() == 0);
  Contest left(3);
  const auto first = left.next();
  REQUIRE(first);
  left.give_up();
  left.took(*first, 1);
  CHECK(left.is_decided());
  CHECK(left.winner() == 0);
  CHECK_FALSE(left.next());
}
