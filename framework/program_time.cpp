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
  while (!in_time_.empty() && runs_.at(in_time_.front()).end(submission_ns_) <= devices) {
    runs_.erase(in_time_.front());
    in_time_.pop_front();
  }
  Run* last = in_time_.empty() ? nullptr : &runs_.at(in_time_.back());
  if (!last || op != last->first + last->count || now_ != last->end(submission_ns_)) {
    last = &runs_[op];
    *last = {op, 0, now_};
    in_time_.push_back(op);
  }
  ++last->count;
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
  const auto after = runs_.upper_bound(op);
  if (after == runs_.begin()) return 0;
  const Run& run = std::prev(after)->second;
  if (op >= run.first + run.count) return 0;
  return run.start + static_cast<Ns>(op - run.first + 1) * submission_ns_;
}

}  // namespace weft
