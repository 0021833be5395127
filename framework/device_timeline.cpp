#include "framework/device_timeline.hpp"

#include <algorithm>

namespace weft {

DeviceTimeline::DeviceTimeline(std::uint32_t width)
    : free_at_(std::max(1u, width)), sums_(kRemembered) {}

double DeviceTimeline::ready(double now) const {
  return std::max(now, *std::min_element(free_at_.begin(), free_at_.end()));
}

std::vector<double> DeviceTimeline::free_at(double now) const {
  std::vector<double> times = free_at_;
  for (double& time : times) time = std::max(now, time);
  return times;
}

double DeviceTimeline::give(double now, double inputs, double seconds) {
  double& free_at = *std::min_element(free_at_.begin(), free_at_.end());
  const double ready = std::max(now, free_at);
  free_at = ready + seconds;
  sum_ += seconds;
  sums_[++given_ % kRemembered] = sum_;
  return std::max(ready, inputs) + seconds;
}

void DeviceTimeline::correct(double now, std::size_t in_flight) {
  if (in_flight == 0) {
    for (double& free_at : free_at_) free_at = std::min(free_at, now);
    return;
  }
  const std::uint64_t left = std::min<std::uint64_t>({in_flight, given_, kRemembered - 1});
  const double before = left == given_ ? 0 : sums_[(given_ - left) % kRemembered];
  double forecast = 0;
  for (const double free_at : free_at_) forecast += std::max(0.0, free_at - now);
  const double late = (sum_ - before - forecast) / static_cast<double>(free_at_.size());
  if (late <= 0) return;
  for (double& free_at : free_at_) free_at = std::max(free_at, now) + late;
}

}  // namespace weft
