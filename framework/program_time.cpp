#include "framework/program_time.hpp"

#include <algorithm>

namespace weft {

ProgramTime::Ns ProgramTime::now() const {
  std::lock_guard lock(mutex_);
  return std::max(now_, devices_.now());
}

ProgramTime::Ns ProgramTime::submitted(std::uint64_t op) {
  std::lock_guard lock(mutex_);
  const Ns devices = devices_.now();
  now_ = std::max(now_, devices);
  while (!runs_.empty() && runs_.front().end(submission_ns_) <= devices) runs_.pop_front();
  const bool goes_on = !runs_.empty() && op == runs_.back().first + runs_.back().count &&
                       now_ == runs_.back().end(submission_ns_);
  if (!goes_on) runs_.push_back({op, 0, now_});
  ++runs_.back().count;
  now_ += submission_ns_;
  return now_;
}

// What is past for the program was there before it waited.
void ProgramTime::noticed() {
  std::lock_guard lock(mutex_);
  if (devices_.now() > now_) now_ = devices_.now() + notice_ns_;
}

ProgramTime::Ns ProgramTime::of(std::uint64_t op) const {
  std::lock_guard lock(mutex_);
  const auto after =
      std::upper_bound(runs_.begin(), runs_.end(), op,
                       [](std::uint64_t number, const Run& run) { return number < run.first; });
  if (after == runs_.begin()) return 0;
  const Run& run = *std::prev(after);
  if (op >= run.first + run.count) return 0;
  return run.start + static_cast<Ns>(op - run.first + 1) * submission_ns_;
}

}  // namespace weft
