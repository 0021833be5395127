#include "actors/emulated/wires.hpp"

#include <algorithm>

namespace weft {

bool Wires::is_timed(const std::vector<std::uint32_t>& hops) const {
  return std::any_of(hops.begin(), hops.end(), [&](std::uint32_t hop) { return rates_[hop] > 0; });
}

Wires::Time Wires::pass(const std::vector<std::uint32_t>& hops, std::size_t bytes, Time start) {
  std::lock_guard lock(mutex_);
  Time end = start;
  for (std::uint32_t hop : hops) {
    if (rates_[hop] <= 0) continue;
    const auto needed = std::chrono::nanoseconds(
        static_cast<std::int64_t>(1e9 * static_cast<double>(bytes) / rates_[hop]));
    free_at_[hop] = std::max(free_at_[hop], start) + needed;
    end = std::max(end, free_at_[hop]);
  }
  return end;
}

}  // namespace weft
