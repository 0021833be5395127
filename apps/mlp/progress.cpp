#include "apps/mlp/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>

namespace weft::mlp {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLine = std::chrono::seconds(15);

// GCC checks the arguments against the format.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...) {
  std::array<char, 256> text{};
  va_list values;
  va_start(values, format);
  std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  return text.data();
}

std::string drawn_bar(double part, std::size_t width) {
  // Eighths of a cell: U+2588 full block to U+258F.
  static const std::array<const char*, 8> kEighths = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(part * static_cast<double>(width) * 8);
  std::string text;
  std::size_t cells = 0;
  for (; cells < eighths / 8 && cells < width; ++cells) text += "█";
  if (cells < width) {
    text += kEighths[eighths % 8];
    ++cells;
  }
  text.append(width - cells, ' ');
  return text;
}

}  // namespace

Console::Console(std::FILE* to) : to_(to), is_terminal_(isatty(fileno(to)) == 1) {
  winsize size{};
  if (is_terminal_ && ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    columns_ = size.ws_col;
}

void Console::erase() {
  if (shown_) std::fputs("\r\033[K", to_);
  shown_ = false;
}

void Console::line(const std::string& text) {
  erase();
  std::fprintf(to_, "%s\n", text.c_str());
  std::fflush(to_);
}

void Console::bar(const std::string& text) {
  if (!is_terminal_) return;
  erase();
  std::fputs(text.c_str(), to_);
  std::fflush(to_);
  shown_ = true;
}

ProgressBar::ProgressBar(Console& console, std::size_t epochs, std::size_t first_epoch,
                         std::size_t epoch_samples)
    : console_(console),
      epochs_(epochs),
      first_epoch_(first_epoch),
      epoch_samples_(epoch_samples) {}

void ProgressBar::show(std::size_t epoch, std::size_t samples, std::optional<double> loss) {
  const auto now = Clock::now();
  if (now - drawn_ < (console_.is_terminal() ? Clock::duration(kRedraw) : kPlainLine)) return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const auto done = static_cast<double>((epoch - first_epoch_) * epoch_samples_ + samples);
  const auto all = static_cast<double>((epochs_ - first_epoch_ + 1) * epoch_samples_);
  const double part = static_cast<double>(samples) / static_cast<double>(epoch_samples_);
  std::string text =
      formatted("%3.0f %%  %s samples/s  %s left", 100 * part, format_count(done / seconds).c_str(),
                format_duration((all - done) * seconds / std::max(done, 1.0)).c_str());
  if (loss) text += formatted("  loss %.4f", *loss);
  const std::string head = formatted("%4zu/%zu  ", epoch, epochs_);
  if (!console_.is_terminal()) {
    console_.line(head + text);
    return;
  }
  const std::size_t taken = head.size() + text.size() + 3;
  const std::size_t width =
      console_.columns() > taken + 8 ? std::min<std::size_t>(console_.columns() - taken, 24) : 0;
  console_.bar(head + (width ? drawn_bar(part, width) + " " : "") + text);
}

std::string format_duration(double seconds) {
  if (seconds < 60) return formatted("%.1f s", seconds);
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 3600) return formatted("%ld min %02ld s", whole / 60, whole % 60);
  return formatted("%ld h %02ld min", whole / 3600, whole % 3600 / 60);
}

std::string format_count(double count) {
  std::string digits = formatted("%.0f", count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace weft::mlp
