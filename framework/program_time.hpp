#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>

#include "framework/virtual_time.hpp"

namespace weft {

/// When the program is, in virtual time: it goes on with each op that it submits, which costs it
/// some time, and with each wait. It may be ahead of the devices; they know when each op came.
///
/// Any thread; several threads of the program count as one.
class ProgramTime {
 public:
  using Ns = VirtualTime::Ns;
  /// Submitting an op costs `submission_ns`; a thread that waited goes on `notice_ns` after the
  /// devices were done.
  ProgramTime(const VirtualTime& devices, Ns submission_ns, Ns notice_ns)
      : devices_(devices), submission_ns_(submission_ns), notice_ns_(notice_ns) {}

  [[nodiscard]] Ns now() const;
  /// The program submits the op with this number, which no other has. Returns when it is submitted.
  Ns submitted(std::uint64_t op);
  /// A thread of the program waited for what has happened just now.
  void noticed();
  /// When that was; 0 for an op that no thread of the program submitted, or if it is past.
  [[nodiscard]] Ns of(std::uint64_t op) const;

 private:
  // Ops in a row, each `submission_ns_` after the one before.
  struct Run {
    std::uint64_t first = 0, count = 0;
    Ns start = 0;
    [[nodiscard]] Ns end(Ns each) const { return start + static_cast<Ns>(count) * each; }
  };

  const VirtualTime& devices_;
  const Ns submission_ns_, notice_ns_;
  mutable std::mutex mutex_;
  Ns now_ = 0;
  std::map<std::uint64_t, Run> runs_;  // those that are not past, by their first op
  std::deque<std::uint64_t> in_time_;  // their first ops: each thread has numbers of its own
};

}  // namespace weft
