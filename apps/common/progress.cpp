#include "apps/common/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft::apps {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLine = std::chrono::seconds(5);
constexpr std::size_t kBarWidth = 28;

std::string format(const char* pattern, double value) {
  char text[48];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string format_rate(double per_second) {
  if (per_second >= 1e6) return format("%.2f M", 1e-6 * per_second);
  if (per_second >= 1e4) return format("%.1f k", 1e-3 * per_second);
  return format(per_second >= 100 ? "%.0f " : "%.2f ", per_second);
}

}  // namespace

Progress::Progress(std::FILE* to, std::string label, std::uint64_t total, std::string unit)
    : to_(to),
      label_(std::move(label)),
      unit_(std::move(unit)),
      total_(std::max<std::uint64_t>(total, 1)),
      terminal_(isatty(fileno(to)) == 1),
      next_(start_ + (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine))) {}

Progress::~Progress() {
  finish();
}

void Progress::update(std::uint64_t done, const std::string& note) {
  const Clock::time_point now = Clock::now();
  if (finished_ || now < next_) return;
  next_ = now + (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine));
  const std::string text = line(done, now - start_, terminal_ ? kBarWidth : 0, note);
  std::fprintf(to_, terminal_ ? "\r%s\x1b[K" : "%s\n", text.c_str());
  std::fflush(to_);
  drawn_ = true;
}

void Progress::finish() {
  if (std::exchange(finished_, true) || !drawn_ || !terminal_) return;
  std::fputs("\r\x1b[K", to_);
  std::fflush(to_);
}

std::string Progress::line(std::uint64_t done, std::chrono::nanoseconds elapsed, std::size_t width,
                           const std::string& note) const {
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  const double seconds = std::chrono::duration<double>(elapsed).count();
  std::string text = label_ + " ";
  if (width > 0) {
    const auto full = static_cast<std::size_t>(share * static_cast<double>(width));
    text += '[' + std::string(full, '#') + std::string(width - full, '.') + ']';
  }
  text += format(" %3.0f %%", 100 * share);
  if (seconds > 0 && done > 0) {
    const double rate = static_cast<double>(done) / seconds;
    text += "  " + format_rate(rate) + unit_ + "/s";
    text += "  " + format_seconds(static_cast<double>(total_) * (1 - share) / rate) + " left";
  }
  if (!note.empty()) text += "  " + note;
  return text;
}

std::string format_seconds(double seconds) {
  if (seconds < 0.9995e-3) return format("%.0f µs", 1e6 * seconds);
  if (seconds < 0.9995) return format(seconds < 0.09995 ? "%.2f ms" : "%.0f ms", 1e3 * seconds);
  if (seconds < 59.995) return format("%.2f s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  char text[48];
  std::snprintf(text, sizeof text, "%lld min %02d s", static_cast<long long>(whole / 60),
                static_cast<int>(whole % 60));
  return text;
}

}  // namespace weft::apps
