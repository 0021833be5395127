#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace weft {

/// When the emulated links are free: copies that cross the same hop share its rate, piece by piece.
class Wires {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `rates[link * 2 + direction]` in bytes per second; 0: as fast as the host.
  explicit Wires(std::vector<double> rates) : rates_(std::move(rates)), free_at_(rates_.size()) {}

  /// Whether any of `hops` has a rate to keep to.
  [[nodiscard]] bool is_timed(const std::vector<std::uint32_t>& hops) const;

  /// Takes the hops for `bytes`, from `start` or when they are free, and returns when the last has
  /// passed them. Any thread.
  Time pass(const std::vector<std::uint32_t>& hops, std::size_t bytes, Time start);

 private:
  std::vector<double> rates_;
  std::mutex mutex_;
  std::vector<Time> free_at_;
};

}  // namespace weft
