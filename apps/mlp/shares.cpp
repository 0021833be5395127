#include "apps/mlp/shares.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "framework/share_tuner.hpp"

namespace weft::mlp {
namespace {

double sum(const std::vector<double>& weights) {
  return std::accumulate(weights.begin(), weights.end(), 0.0);
}

}  // namespace

Shares::Shares(std::vector<double> weights) : weights_(std::move(weights)) {
  for (double weight : weights_)
    if (!(weight >= 0) || !std::isfinite(weight))
      throw std::invalid_argument("a share is a number of 0 or more");
  if (!(sum(weights_) > 0)) throw std::invalid_argument("at least one share must be above 0");
}

std::vector<std::size_t> Shares::cuts(std::size_t rows) const {
  const auto cuts = cut_rows(static_cast<std::int64_t>(rows), weights_);
  return {cuts.begin(), cuts.end()};
}

double Shares::fraction(std::size_t device) const {
  return weights_[device] / sum(weights_);
}

std::string Shares::to_string() const {
  std::string text;
  for (double weight : weights_) {
    char number[32];
    std::snprintf(number, sizeof number, "%.6g", weight);
    text += (text.empty() ? "" : ",") + std::string(number);
  }
  return text;
}

std::optional<Shares> parse_shares(const std::string& text, std::size_t devices) {
  if (text == "auto") return std::nullopt;
  std::vector<double> weights;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    double weight = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), weight);
    if (error != std::errc() || end != part.data() + part.size() || !(weight >= 0))
      throw std::invalid_argument(
          "--share \"" + text + "\": \"" + part +
          "\" is not a number of 0 or more; give auto, or a number for each "
          "device such as 1,1,0.5");
    weights.push_back(weight);
  }
  if (weights.size() != devices)
    throw std::invalid_argument("--share \"" + text + "\": has " + std::to_string(weights.size()) +
                                (weights.size() == 1 ? " number" : " numbers") + " for " +
                                std::to_string(devices) + (devices == 1 ? " device" : " devices") +
                                "; give one for each, or auto");
  try {
    return Shares(std::move(weights));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("--share \"" + text + "\": " + error.what());
  }
}

Shares shares_for(const std::vector<double>& seconds_per_sample) {
  constexpr double kQuarter = 0.25, kLeast = 1.0 / 64;
  const double fastest = *std::min_element(seconds_per_sample.begin(), seconds_per_sample.end());
  std::vector<double> weights;
  for (double seconds : seconds_per_sample) {
    const double speed = seconds > 0 ? fastest / seconds : 1;
    const double coarse = speed < 1.5 * kQuarter ? std::exp2(std::round(std::log2(speed)))
                                                 : kQuarter * std::round(speed / kQuarter);
    weights.push_back(std::max(coarse, kLeast));
  }
  return Shares(std::move(weights));
}

}  // namespace weft::mlp
