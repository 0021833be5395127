#include "framework/contest.hpp"

#include <algorithm>
#include <numeric>

namespace weft {

Contest::Contest(std::size_t candidates) : times_(candidates), running_(candidates) {
  std::iota(running_.begin(), running_.end(), std::size_t{0});
  missing_ = candidates;
  is_decided_ = candidates < 2;
}

std::optional<std::size_t> Contest::next() {
  if (is_decided_ || turn_ == running_.size()) return std::nullopt;
  return running_[turn_++];
}

void Contest::took(std::size_t candidate, double time) {
  if (is_decided_) return;
  times_[candidate].push_back(time);
  if (--missing_ == 0) end_round();
}

void Contest::give_up() {
  is_decided_ = true;
  winner_ = 0;
}

// The first time of each is not counted with the others: it has chosen whom to try again.
double Contest::median_of(std::size_t candidate) const {
  std::vector<double> times(times_[candidate].begin() + 1, times_[candidate].end());
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void Contest::end_round() {
  if (round_++ == 0) {
    std::sort(running_.begin(), running_.end(), [&](std::size_t a, std::size_t b) {
      return times_[a][0] < times_[b][0] || (times_[a][0] == times_[b][0] && a < b);
    });
    const double best = times_[running_[0]][0];
    std::vector<std::size_t> finalists;
    for (const std::size_t candidate : running_)
      if (finalists.size() < kFinalists && times_[candidate][0] <= kNear * best)
        finalists.push_back(candidate);
    if (std::find(finalists.begin(), finalists.end(), 0) == finalists.end()) finalists.push_back(0);
    running_ = std::move(finalists);
  }
  turn_ = 0;
  missing_ = running_.size();
  if (round_ < kRounds && running_.size() > 1) return;
  is_decided_ = true;
  if (running_.size() < 2) return;
  const double usual = median_of(0);
  double best = kClearly * usual;
  for (const std::size_t candidate : running_)
    if (candidate != 0 && median_of(candidate) < best) {
      best = median_of(candidate);
      winner_ = candidate;
    }
}

}  // namespace weft
