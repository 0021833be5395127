#include "framework/share_tuner.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "framework/failure.hpp"

namespace weft {

std::vector<std::int64_t> cut_rows(std::int64_t rows, const std::vector<double>& weights,
                                   bool has_one_each) {
  const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> cuts{0};
  double before = 0;
  for (const double weight : weights) {
    before += weight;
    const double at = std::round(static_cast<double>(rows) * before / whole);
    cuts.push_back(std::clamp(static_cast<std::int64_t>(at), cuts.back(), rows));
  }
  cuts.back() = rows;
  const auto parts = static_cast<std::int64_t>(
      std::count_if(weights.begin(), weights.end(), [](double weight) { return weight > 0; }));
  if (!has_one_each || rows < parts) return cuts;
  auto least = [&](std::size_t part) { return weights[part] > 0 ? 1 : 0; };
  for (std::size_t i = 0; i < weights.size(); ++i)
    cuts[i + 1] = std::max(cuts[i + 1], cuts[i] + least(i));
  cuts.back() = rows;
  for (std::size_t i = weights.size(); i-- > 0;)
    cuts[i] = std::min(cuts[i], cuts[i + 1] - least(i));
  return cuts;
}

ShareTuner::ShareTuner(std::vector<double> weights) : weights_(std::move(weights)) {
  for (const double weight : weights_)
    if (!(weight >= 0) || !std::isfinite(weight))
      throw UsageError("a share is a number of 0 or more, not " + std::to_string(weight));
  if (std::none_of(weights_.begin(), weights_.end(), [](double weight) { return weight > 0; }))
    throw UsageError("at least one share must be above 0");
}

bool ShareTuner::tune(const std::vector<double>& seconds, std::int64_t rows) {
  double shortest = 0, longest = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] == 0 || !(seconds[i] > 0)) continue;
    shortest = shortest > 0 ? std::min(shortest, seconds[i]) : seconds[i];
    longest = std::max(longest, seconds[i]);
  }
  if (longest <= kTolerance * shortest) return false;
  // What each has now: whole rows, where their number is known.
  std::vector<double> shares = weights_;
  if (rows > 0) {
    const auto now = cut_rows(rows, weights_, true);
    for (std::size_t i = 0; i < shares.size(); ++i)
      shares[i] = static_cast<double>(now[i + 1] - now[i]);
  }
  std::vector<double> tuned = shares;
  for (std::size_t i = 0; i < weights_.size(); ++i)
    if (weights_[i] > 0 && seconds[i] > 0) tuned[i] = shares[i] / seconds[i];
  // Of what is not known the weight stays in proportion to the others'.
  double known_before = 0, known_after = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i)
    if (seconds[i] > 0) {
      known_before += shares[i];
      known_after += tuned[i];
    }
  for (std::size_t i = 0; i < weights_.size(); ++i)
    if (!(seconds[i] > 0)) tuned[i] *= known_after / known_before;
  const double largest = *std::max_element(tuned.begin(), tuned.end());
  for (std::size_t i = 0; i < weights_.size(); ++i)
    tuned[i] = weights_[i] > 0 ? std::max(tuned[i] / largest, kLeast) : 0;
  if (rows > 0) {
    const auto now = cut_rows(rows, weights_, true), then = cut_rows(rows, tuned, true);
    double expected = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i)
      if (now[i + 1] > now[i])
        expected = std::max(expected, seconds[i] * static_cast<double>(then[i + 1] - then[i]) /
                                          static_cast<double>(now[i + 1] - now[i]));
    if (expected * kTolerance >= longest) return false;
  }
  weights_ = std::move(tuned);
  return true;
}

}  // namespace weft
