#include "framework/cost_curve.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace weft {

CostCurve::CostCurve(std::vector<Point> points) {
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.amount < b.amount; });
  for (const Point& point : points) {
    assert(point.seconds > 0);
    const Knot knot{std::log(std::max(1.0, point.amount)), std::log(point.seconds), 1};
    if (points_.empty() || points_.back().amount < knot.amount) {
      points_.push_back(knot);
      continue;
    }
    Knot& same = points_.back();
    same.seconds += (knot.seconds - same.seconds) / ++same.weight;
  }
  make_rising(points_);
}

// Pools neighbours that fall until none do, which is the nearest rising sequence in the sense of
// least squares (Barlow, Bartholomew, Bremner, Brunk: Statistical Inference under Order
// Restrictions, 1.2).
void CostCurve::make_rising(std::vector<Knot>& knots) {
  struct Pool {
    double seconds = 0, weight = 0;
    std::size_t count = 0;
  };
  std::vector<Pool> pools;
  for (const Knot& knot : knots) {
    pools.push_back({knot.seconds, knot.weight, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].seconds > pools.back().seconds) {
      const Pool last = pools.back();
      pools.pop_back();
      Pool& before = pools.back();
      before.weight += last.weight;
      before.seconds += (last.seconds - before.seconds) * last.weight / before.weight;
      before.count += last.count;
    }
  }
  std::size_t at = 0;
  for (const Pool& pool : pools)
    for (std::size_t i = 0; i < pool.count; ++i) knots[at++].seconds = pool.seconds;
}

double CostCurve::seconds(double amount) const {
  assert(!is_empty());
  const double x = std::log(std::max(1.0, amount));
  const auto after =
      std::lower_bound(points_.begin(), points_.end(), x,
                       [](const Knot& knot, double value) { return knot.amount < value; });
  if (after == points_.begin()) return std::exp(after->seconds + x - after->amount);
  const Knot& before = *std::prev(after);
  if (after == points_.end()) return std::exp(before.seconds + x - before.amount);
  const double part = (x - before.amount) / (after->amount - before.amount);
  return std::exp(before.seconds + part * (after->seconds - before.seconds));
}

}  // namespace weft
