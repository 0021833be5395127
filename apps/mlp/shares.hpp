#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace weft::mlp {

/// How a minibatch is divided among devices: device i takes `weights[i]` parts of it.
class Shares {
 public:
  /// All equal.
  explicit Shares(std::size_t devices) : weights_(devices, 1.0) {}
  /// Throws `std::invalid_argument` for a weight that is not finite or negative, or if all are 0.
  explicit Shares(std::vector<double> weights);

  /// Where the shards of `rows` rows begin and end: device i takes rows [cuts[i], cuts[i + 1]).
  [[nodiscard]] std::vector<std::size_t> cuts(std::size_t rows) const;

  [[nodiscard]] const std::vector<double>& weights() const { return weights_; }
  /// What part of a batch device i takes, from 0 to 1.
  [[nodiscard]] double fraction(std::size_t device) const;
  /// As `--share` takes it: `1,1,0.5`.
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<double> weights_;
};

/// Reads `--share`: nothing for `auto`, else `devices` numbers. Throws `std::invalid_argument`
/// that says what is wrong.
std::optional<Shares> parse_shares(const std::string& text, std::size_t devices);

/// Weights from seconds a sample took on each device, relative to the fastest: quarters, and below
/// one quarter halves of it down to 1/64, so that noise changes little.
Shares shares_for(const std::vector<double>& seconds_per_sample);

}  // namespace weft::mlp
