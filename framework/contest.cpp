#include "framework/contest.hpp"

#include <algorithm>
#include <numeric>

namespace weft {

Contest::Contest(std::size_t candidates) : times_(candidates), turns_(candidates) {
  std::iota(turns_.begin(), turns_.end(), std::size_t{0});
  missing_ = candidates;
  is_decided_ = candidates < 2;
}

std::optional<std::size_t> Contest::next() {
  if (is_decided_ || turn_ == turns_.size()) return std::nullopt;
  return turns_[turn_++];
}

void Contest::took(std::size_t candidate, double time) {
  if (is_decided_) return;
  times_[candidate].push_back(time);
  if (--missing_ > 0) return;
  if (is_final_)
    choose_winner();
  else
    choose_finalists();
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

void Contest::choose_finalists() {
  std::sort(turns_.begin(), turns_.end(), [&](std::size_t a, std::size_t b) {
    return times_[a][0] < times_[b][0] || (times_[a][0] == times_[b][0] && a < b);
  });
  const double best = times_[turns_[0]][0];
  std::vector<std::size_t> finalists;
  for (const std::size_t candidate : turns_)
    if (finalists.size() < kFinalists && times_[candidate][0] <= kNear * best)
      finalists.push_back(candidate);
  if (std::find(finalists.begin(), finalists.end(), 0) == finalists.end()) finalists.push_back(0);
  is_final_ = true;
  is_decided_ = finalists.size() < 2;
  turns_.clear();
  for (std::size_t i = 0; i < kTimes; ++i)
    turns_.insert(turns_.end(), finalists.begin(), finalists.end());
  turn_ = 0;
  missing_ = turns_.size();
}

void Contest::choose_winner() {
  is_decided_ = true;
  double best = kClearly * median_of(0);
  for (std::size_t candidate = 1; candidate < times_.size(); ++candidate)
    if (times_[candidate].size() > 1 && median_of(candidate) < best) {
      best = median_of(candidate);
      winner_ = candidate;
    }
}

}  // namespace weft
