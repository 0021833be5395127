#include "framework/cost_curve.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "support/catch.hpp"

using weft::CostCurve;

TEST_CASE("a curve goes through its points, given in any order", "[cost_curve]") {
  const CostCurve curve({{1e9, 2e-3}, {1e3, 1e-6}, {1e6, 5e-6}});
  CHECK(curve.seconds(1e3) == Approx(1e-6));
  CHECK(curve.seconds(1e6) == Approx(5e-6));
  CHECK(curve.seconds(1e9) == Approx(2e-3));
}

TEST_CASE("between two points a curve is straight on logarithmic axes", "[cost_curve]") {
  const CostCurve curve({{100, 1e-6}, {10'000, 4e-6}});
  CHECK(curve.seconds(1000) == Approx(2e-6));  // half way to both
  CHECK(curve.seconds(100 * std::pow(100, 0.25)) == Approx(1e-6 * std::sqrt(2)));
}

TEST_CASE("beyond its points a curve keeps the nearest one's rate", "[cost_curve]") {
  const CostCurve curve({{100, 1e-6}, {10'000, 4e-6}});
  CHECK(curve.seconds(50) == Approx(0.5e-6));
  CHECK(curve.seconds(1e6) == Approx(400e-6));
  const CostCurve one({{100, 1e-6}});
  CHECK(one.seconds(10) == Approx(1e-7));
  CHECK(one.seconds(1000) == Approx(1e-5));
}

TEST_CASE("points of one amount count as their geometric mean", "[cost_curve]") {
  const CostCurve curve({{100, 1e-6}, {100, 4e-6}, {100, 2e-6}});
  CHECK(curve.seconds(100) == Approx(2e-6));
}

TEST_CASE("an amount of nothing counts as 1", "[cost_curve]") {
  const CostCurve curve({{0, 3e-6}});
  CHECK(curve.seconds(0) == Approx(3e-6));
  CHECK(curve.seconds(1) == Approx(3e-6));
}

TEST_CASE("two points that fall share their mean, and the rest stays", "[cost_curve]") {
  const CostCurve curve({{10, 1e-6}, {100, 8e-6}, {1000, 2e-6}, {10'000, 9e-6}});
  CHECK(curve.seconds(10) == Approx(1e-6));
  CHECK(curve.seconds(100) == Approx(4e-6));
  CHECK(curve.seconds(1000) == Approx(4e-6));
  CHECK(curve.seconds(10'000) == Approx(9e-6));
}

TEST_CASE("more work never takes less time, whatever the noise", "[cost_curve]") {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(0, 12), noise(-3, 3);
  for (int round = 0; round < 50; ++round) {
    std::vector<CostCurve::Point> points;
    for (int i = 0; i < 30; ++i) {
      const double x = exponent(random);
      points.push_back({std::pow(10, x), 1e-9 * std::pow(10, 0.5 * x + noise(random))});
    }
    const CostCurve curve(points);
    double last = 0;
    for (double x = -1; x < 14; x += 0.01) {
      const double seconds = curve.seconds(std::pow(10, x));
      CHECK(seconds >= last * (1 - 1e-12));
      last = seconds;
    }
  }
}
