#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace weft::apps {

/// How far a loop has come: a bar with rate and time left on a terminal, redrawn a few times a
/// second; elsewhere a plain line every few seconds. One thread.
///
///     Progress progress(stdout, "epoch 1", 60'000, "samples");
///     for (…) progress.update(done, "loss 0.52");
///     progress.finish();
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `total` > 0 in `unit`s. `to` outlives it.
  Progress(std::FILE* to, std::string label, std::uint64_t total, std::string unit);
  /// Ends as `finish` does.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of the total are done; `note` is shown behind the bar. Cheap when called often.
  void update(std::uint64_t done, const std::string& note = {});
  /// Takes the bar away (a terminal) or says nothing more. Idempotent.
  void finish();

  /// The line for `done` after `elapsed`, `width` characters of bar; without bar if 0.
  [[nodiscard]] std::string line(std::uint64_t done, std::chrono::nanoseconds elapsed,
                                 std::size_t width, const std::string& note) const;

 private:
  std::FILE* to_;
  const std::string label_, unit_;
  const std::uint64_t total_;
  const bool terminal_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
  bool drawn_ = false, finished_ = false;
};

/// `850 µs`, `12.3 ms`, `4.56 s`, `2 min 05 s`
std::string format_seconds(double seconds);

}  // namespace weft::apps
