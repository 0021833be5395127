#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>

namespace weft::mlp {

/// Where text for people goes: a terminal, which can redraw its last line, or a file or pipe, which
/// gets plain lines.
class Console {
 public:
  explicit Console(std::FILE* to);

  /// Writes a line, in place of a bar that is shown.
  void line(const std::string& text);
  /// Shows or redraws the bar. Not on a terminal: nothing.
  void bar(const std::string& text);
  [[nodiscard]] bool is_terminal() const { return is_terminal_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }

 private:
  void erase();
  std::FILE* to_;
  bool is_terminal_;
  bool shown_ = false;
  std::size_t columns_ = 80;
};

/// Says how far training is: a bar with rate and time left on a terminal, at most ten times a
/// second; else a line now and then if an epoch takes long.
class ProgressBar {
 public:
  /// `total` samples are to be trained in all, `epochs` times `epoch_samples` of them.
  ProgressBar(Console& console, std::size_t epochs, std::size_t first_epoch,
              std::size_t epoch_samples);

  /// `samples` of epoch number `epoch` (from 1) are done.
  void show(std::size_t epoch, std::size_t samples, std::optional<double> loss);

 private:
  using Clock = std::chrono::steady_clock;
  Console& console_;
  std::size_t epochs_, first_epoch_, epoch_samples_;
  Clock::time_point start_ = Clock::now(), drawn_ = start_;
};

/// `3.2 s`, `1 min 05 s`, `2 h 10 min`.
std::string format_duration(double seconds);
/// `142,300`
std::string format_count(double count);

}  // namespace weft::mlp
