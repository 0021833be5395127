#pragma once

#include <cstddef>
#include <vector>

namespace weft {

/// Seconds of a kernel by how much it has to do, through measured points: straight lines in a
/// picture with logarithmic axes, and the nearest point's rate before the first and behind the
/// last.
///
/// More work never takes less time: points that say otherwise are noise, and share a mean.
class CostCurve {
 public:
  struct Point {
    double amount = 0;   ///< floating-point operations or bytes; below 1 counts as 1
    double seconds = 0;  ///< > 0
  };

  CostCurve() = default;
  /// Points in any order; several of one amount count as their geometric mean.
  explicit CostCurve(std::vector<Point> points);

  [[nodiscard]] bool is_empty() const { return points_.empty(); }
  /// Seconds for `amount`; not of an empty curve.
  [[nodiscard]] double seconds(double amount) const;

 private:
  struct Knot {
    double amount = 0, seconds = 0;  // logarithms
    double weight = 1;               // points that it stands for
  };
  static void make_rising(std::vector<Knot>& knots);

  std::vector<Knot> points_;  // amounts rise, seconds do not fall
};

}  // namespace weft
