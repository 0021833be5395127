#pragma once

#include <algorithm>
#include <vector>

namespace weft::bench {

/// The middle of a sample; 0 of an empty one.
inline double median(std::vector<double> sample) {
  if (sample.empty()) return 0;
  std::sort(sample.begin(), sample.end());
  const std::size_t middle = sample.size() / 2;
  return sample.size() % 2 ? sample[middle] : (sample[middle - 1] + sample[middle]) / 2;
}

}  // namespace weft::bench
