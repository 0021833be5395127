#pragma once

#include <algorithm>
#include <vector>

#include "apps/bench/statistics.hpp"

namespace weft::bench {

/// A sample in three numbers; zeros for an empty one.
struct Spread {
  double median = 0, least = 0, most = 0;
};

inline Spread spread_of(const std::vector<double>& sample) {
  if (sample.empty()) return {};
  const auto [least, most] = std::minmax_element(sample.begin(), sample.end());
  return {median(sample), *least, *most};
}

/// The same sample in another unit; a negative power turns times into rates.
inline Spread scaled(const Spread& spread, double factor) {
  return {spread.median * factor, spread.least * factor, spread.most * factor};
}

}  // namespace weft::bench
