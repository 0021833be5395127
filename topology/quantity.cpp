#include "topology/quantity.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace weft {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

std::string with_unit(double value, const char* const* units, int count, double step) {
  int unit = 0;
  while (value >= step * 0.9995 && unit + 1 < count) {
    value /= step;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", value < 10 ? 2 : value < 100 ? 1 : 0, value);
  std::string number = text;
  if (number.find('.') != std::string::npos) {
    while (number.back() == '0') number.pop_back();
    if (number.back() == '.') number.pop_back();
  }
  return number + ' ' + units[unit];
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string format_cpu_list(const std::vector<std::uint32_t>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[i]);
    if (last > i) text += '-' + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text;
}

std::optional<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text,
                                                         std::uint32_t most) {
  std::vector<std::uint32_t> cpus;
  text = trimmed(text);
  if (text.empty()) return cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](std::uint32_t& value) {
    while (at < end && is_blank(*at)) ++at;
    const auto result = std::from_chars(at, end, value);
    if (result.ec != std::errc() || value > most) return false;
    at = result.ptr;
    while (at < end && is_blank(*at)) ++at;
    return true;
  };
  while (true) {
    std::uint32_t first = 0;
    if (!number(first)) return std::nullopt;
    std::uint32_t last = first;
    if (at < end && *at == '-') {
      ++at;
      if (!number(last) || last < first) return std::nullopt;
    }
    if (cpus.size() + (last - first) > 2 * static_cast<std::size_t>(most)) return std::nullopt;
    for (std::uint32_t cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (at == end) break;
    if (*at++ != ',') return std::nullopt;
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::optional<std::vector<std::uint32_t>> parse_cpu_mask(std::string_view text,
                                                         std::uint32_t most) {
  std::vector<std::uint32_t> words;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view word = trimmed(text.substr(0, comma));
    if (word.starts_with("0x")) word.remove_prefix(2);
    std::uint32_t value = 0;
    if (!word.empty()) {
      const auto result = std::from_chars(word.data(), word.data() + word.size(), value, 16);
      if (result.ec != std::errc() || result.ptr != word.data() + word.size()) return std::nullopt;
    }
    words.push_back(value);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (words.size() > most / 32) return std::nullopt;
  std::vector<std::uint32_t> bits;
  for (std::size_t w = 0; w < words.size(); ++w)
    for (std::uint32_t bit = 0; bit < 32; ++bit)
      if (words[words.size() - 1 - w] >> bit & 1)
        bits.push_back(static_cast<std::uint32_t>(32 * w + bit));
  return bits;
}

std::string format_bytes(std::size_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return with_unit(static_cast<double>(bytes), kUnits, 6, 1024);
}

std::string format_rate(double bytes_per_second) {
  static constexpr const char* kUnits[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  if (bytes_per_second <= 0) return "out of order";
  return with_unit(bytes_per_second, kUnits, 5, 1000);
}

namespace {

std::optional<double> parse_quantity(std::string_view text, double step) {
  text = trimmed(text);
  double value = 0;
  const auto result =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (result.ec != std::errc() || !(value >= 0)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  std::string_view unit = trimmed(text);
  if (unit.size() == 3 && unit[1] == 'i') step = 1024;
  double factor = 1;
  if (!unit.empty() && unit != "B") {
    const bool has_form =
        (unit.size() == 2 || (unit.size() == 3 && unit[1] == 'i')) && unit.back() == 'B';
    const std::size_t power = has_form
                                  ? std::string_view("kMGT").find(unit[0] == 'K' ? 'k' : unit[0])
                                  : std::string_view::npos;
    if (power == std::string_view::npos) return std::nullopt;
    for (std::size_t i = 0; i <= power; ++i) factor *= step;
  }
  if (value * factor > 1152921504606846976.0) return std::nullopt;
  return value * factor;
}

}  // namespace

std::optional<double> parse_bytes(std::string_view text) {
  return parse_quantity(text, 1024);
}

std::optional<double> parse_rate(std::string_view text) {
  text = trimmed(text);
  if (!text.ends_with("/s")) return std::nullopt;
  return parse_quantity(text.substr(0, text.size() - 2), 1000);
}

}  // namespace weft
