#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

/// Where the parts of `rows` rows begin and end: part i takes rows [cuts[i], cuts[i + 1]), as many
/// as go with `weights[i]`, to the nearest row. At least one weight is above 0.
std::vector<std::int64_t> cut_rows(std::int64_t rows, const std::vector<double>& weights);

/// Weights of unequal parts that are to take the same time, corrected as times come in. Small
/// differences change nothing: moving rows costs something, too.
class ShareTuner {
 public:
  /// How much longer the slowest part may take than the fastest.
  static constexpr double kTolerance = 1.05;
  /// No part gets less than this of the largest: one without rows would never be measured again.
  static constexpr double kLeast = 1.0 / 1024;

  /// Throws `UsageError` for no weights, for one that is negative or not finite, or if all are 0.
  explicit ShareTuner(std::vector<double> weights);

  /// `seconds[i]`: what part i takes with its present weight; 0: not known. Whether the weights
  /// have changed.
  bool tune(const std::vector<double>& seconds);

  [[nodiscard]] const std::vector<double>& weights() const { return weights_; }

 private:
  std::vector<double> weights_;
};

}  // namespace weft
