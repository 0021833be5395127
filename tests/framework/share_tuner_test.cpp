#include <cmath>
#include <limits>

#include "framework/failure.hpp"
#include "framework/share_tuner.hpp"
#include "support/catch.hpp"

using namespace weft;

TEST_CASE("rows are cut by weight, to the nearest row, and none is lost") {
  CHECK(cut_rows(10, {1, 1}) == std::vector<std::int64_t>{0, 5, 10});
  CHECK(cut_rows(10, {1, 4}) == std::vector<std::int64_t>{0, 2, 10});
  CHECK(cut_rows(7, {1, 0, 1}) == std::vector<std::int64_t>{0, 4, 4, 7});
  CHECK(cut_rows(0, {1, 2}) == std::vector<std::int64_t>{0, 0, 0});
  CHECK(cut_rows(2, {1, 1, 1, 1}).back() == 2);
}

TEST_CASE("shares go to where parts take the same time, whatever the devices' speeds") {
  const std::vector<double> speeds{1, 4, 8};
  ShareTuner tuner({1, 1, 1});
  auto seconds = [&] {
    std::vector<double> times;
    for (std::size_t i = 0; i < 3; ++i) times.push_back(tuner.weights()[i] / speeds[i]);
    return times;
  };
  CHECK(tuner.tune(seconds()));
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(tuner.weights()[i] == Approx(speeds[i] / 8).epsilon(1e-9));
  CHECK_FALSE(tuner.tune(seconds()));  // nothing is moved for nothing

  // Fixed costs make times no multiple of the rows: it still gets there.
  auto with_launch = [&] {
    auto times = seconds();
    for (double& time : times) time += 0.01;
    return times;
  };
  for (int i = 0; i < 20; ++i) tuner.tune(with_launch());
  CHECK_FALSE(tuner.tune(with_launch()));
}

TEST_CASE("a part whose time is not known keeps its share, and none falls to nothing") {
  ShareTuner tuner({1, 1, 2});
  CHECK(tuner.tune({4, 1, 0}));
  const auto& weights = tuner.weights();
  CHECK(weights[1] == Approx(4 * weights[0]));
  CHECK(weights[2] == Approx(weights[0] + weights[1]));
  ShareTuner steep({1, 1});
  CHECK(steep.tune({1e9, 1e-9}));
  CHECK(steep.weights()[0] == ShareTuner::kLeast);
  ShareTuner without({0, 1, 1});
  CHECK(without.tune({0, 1, 3}));
  CHECK(without.weights()[0] == 0);
  ShareTuner nothing({1, 1});
  CHECK_FALSE(nothing.tune({0, 0}));
}

TEST_CASE("few rows are not moved to and fro, and each part keeps one", "") {
  // Two equal devices and 15 rows: no other cut is better.
  ShareTuner tuner({1, 1});
  for (int i = 0; i < 5; ++i) {
    const auto cuts = cut_rows(15, tuner.weights(), true);
    CHECK_FALSE(tuner.tune({double(cuts[1]), double(15 - cuts[1])}, 15));
  }
  // But an unequal pair's are.
  CHECK(tuner.tune({8 * 3.0, 7 * 1.0}, 15));
  CHECK(cut_rows(15, tuner.weights(), true) == std::vector<std::int64_t>{0, 4, 15});
  CHECK(cut_rows(10, {1e-3, 1, 1e-3}, true) == std::vector<std::int64_t>{0, 1, 9, 10});
  CHECK(cut_rows(10, {1, 0, 1e-3}, true) == std::vector<std::int64_t>{0, 9, 9, 10});
  CHECK(cut_rows(2, {1, 1, 1}, true).back() == 2);
  CHECK(cut_rows(3, {1e-6, 1e-6, 1}, true) == std::vector<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE("weights that are none are refused") {
  CHECK_THROWS_AS(ShareTuner({}), UsageError);
  CHECK_THROWS_AS(ShareTuner({0, 0}), UsageError);
  CHECK_THROWS_WITH(ShareTuner({1, -2}), Catch::Matchers::Contains("-2"));
  CHECK_THROWS_AS(ShareTuner({1, std::nan("")}), UsageError);
}
