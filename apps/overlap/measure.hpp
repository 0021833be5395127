#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "actors/runtime.hpp"

namespace weft::apps {

/// One piece of work, run several times.
struct Timing {
  double seconds = 0;                   ///< median
  double least = 0, most = 0;           ///< the fastest and the slowest run
  std::int64_t from_ns = 0, to_ns = 0;  ///< the median run on the recording's clock
};

/// Runs work once to warm up and then `repeat` times, each after everything else has settled.
class Measure {
 public:
  /// `runtime` records and outlives this; `on_run` is called after each run.
  Measure(const Runtime& runtime, int repeat, std::function<void()> on_run);

  /// `work` returns when all it submitted is done. `before` makes ready for it, in no one's time.
  Timing operator()(const std::function<void()>& work, const std::function<void()>& before) const;

 private:
  const Runtime& runtime_;
  const int repeat_;
  std::function<void()> on_run_;
};

}  // namespace weft::apps
