#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace weft {

/// Which of several ways to do one thing is the fastest, found out by trials between other work,
/// whose times come later. Each is tried once; those that come near the best are tried some times
/// more, in turn, so that what else the device does meets them all. The first one is the
/// usual one and stays unless another is clearly faster. One thread.
class Contest {
 public:
  explicit Contest(std::size_t candidates);

  /// Who is to be tried now; nobody while first times are missing, and once all is tried.
  std::optional<std::size_t> next();
  /// One of those took so long; infinity if it cannot be done.
  void took(std::size_t candidate, double time);
  /// The usual one it is.
  void give_up();

  [[nodiscard]] bool is_decided() const { return is_decided_; }
  [[nodiscard]] std::size_t winner() const { return winner_; }

 private:
  static constexpr std::size_t kFinalists = 5, kTimes = 4;
  static constexpr double kNear = 1.25;     // times the best of the first round
  static constexpr double kClearly = 0.98;  // of the usual one's time

  void choose_finalists();
  void choose_winner();
  [[nodiscard]] double median_of(std::size_t candidate) const;

  std::vector<std::vector<double>> times_;  // by candidate
  std::vector<std::size_t> turns_;          // who is to be tried, in this order
  std::size_t turn_ = 0, missing_;
  bool is_final_ = false;
  std::size_t winner_ = 0;
  bool is_decided_ = false;
};

}  // namespace weft
