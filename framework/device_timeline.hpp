#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

/// When a device will have run what it was given, by forecast. Times are seconds on one clock. Not
/// for several threads at once.
class DeviceTimeline {
 public:
  /// `width`: how many ops it runs at a time.
  explicit DeviceTimeline(std::uint32_t width);

  /// When it can begin another op, not before `now`.
  [[nodiscard]] double ready(double now) const;
  /// When each of the ops that it runs at a time leaves room for another, not before `now`.
  [[nodiscard]] std::vector<double> free_at(double now) const;
  /// It was given an op of `seconds` that begins no sooner than `inputs`; until then it may run
  /// others. Returns when that ends.
  double give(double now, double inputs, double seconds);
  /// `in_flight` of what it was given is not done: if that takes longer than the forecast said,
  /// what follows comes later; if there is none, it is free now.
  void correct(double now, std::size_t in_flight);

 private:
  static constexpr std::size_t kRemembered = 8192;  // more than a device takes ahead

  std::vector<double> free_at_;  // by what runs at a time
  std::vector<double> sums_;     // of all seconds given so far, for the last so many ops
  std::uint64_t given_ = 0;
  double sum_ = 0;
};

}  // namespace weft
