#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

/// Where the parts of `rows` rows begin and end: part i takes rows [cuts[i], cuts[i + 1]), as many
/// as go with `weights[i]`, to the nearest row. At least one weight is above 0. With
/// `has_one_each` parts of any weight above 0 get a row, if there are as many.
std::vector<std::int64_t> cut_rows(std::int64_t rows, const std::vector<double>& weights,
                                   bool has_one_each = false);

/// Weights of unequal parts that are to take the same time, corrected as times come in. Small
/// differences change nothing: moving rows costs something, too.
class ShareTuner {
 public:
  /// How much longer the slowest part may take than the fastest.
  static constexpr double kTolerance = 1.05;
  /// No part's weight falls below this of the largest.
  static constexpr double kLeast = 1.0 / 1024;

  /// Throws `UsageError` for no weights, for one that is negative or not finite, or if all are 0.
  explicit ShareTuner(std::vector<double> weights);

  /// `seconds[i]`: what part i takes with its present weight; 0: not known. Whether the weights
  /// have changed: only if the slowest part will take less time then, with whole rows of `rows`
  /// (0: of any number).
  bool tune(const std::vector<double>& seconds, std::int64_t rows = 0);

  [[nodiscard]] const std::vector<double>& weights() const { return weights_; }

 private:
  std::vector<double> weights_;
};

}  // namespace weft
