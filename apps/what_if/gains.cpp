#include "apps/what_if/gains.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/common/progress.hpp"
#include "apps/common/table.hpp"

namespace weft::apps {
namespace {

constexpr double kLeast = 1e-3;  // share of the time that is worth a line

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

bool is_time(const std::string& target) {
  for (const char* what : {".latency", ".launch", ".submission"})
    if (target.ends_with(what)) return true;
  return false;
}

}  // namespace

std::vector<Gain> WhatIf::best(std::size_t top) const {
  std::vector<Gain> kept;
  for (const Gain& gain : gains)
    if (kept.size() < top && saved(gain) >= kLeast) kept.push_back(gain);
  return kept;
}

WhatIf try_each(double seconds, const std::vector<std::string>& targets, double factor,
                const std::function<double(const std::string& scale)>& time_of) {
  WhatIf result{factor, seconds, {}};
  for (const std::string& target : targets)
    result.gains.push_back({target, time_of(target + "=" + number(factor))});
  std::stable_sort(result.gains.begin(), result.gains.end(),
                   [](const Gain& a, const Gain& b) { return a.seconds < b.seconds; });
  return result;
}

std::string change_text(const std::string& target, double factor) {
  return target + (is_time(target) ? " / " : " × ") + number(factor);
}

std::string saved_text(double saved) {
  char text[32];
  std::snprintf(text, sizeof text, "%s%.1f %%", saved >= 0 ? "−" : "+", 100 * std::abs(saved));
  return text;
}

std::string table_of(const WhatIf& what_if, std::size_t top) {
  const auto best = what_if.best(top);
  Table table({"one thing faster", "time", "", ""});
  for (const Gain& gain : best)
    table.add({change_text(gain.target, what_if.factor), format_seconds(what_if.seconds),
               "-> " + format_seconds(gain.seconds), saved_text(what_if.saved(gain))});
  std::string text = best.empty() ? "" : table.text();
  const std::size_t rest = what_if.gains.size() - best.size();
  if (best.empty())
    text += "none of " + std::to_string(rest) + " things saves a thousandth of " +
            format_seconds(what_if.seconds) + "\n";
  else if (rest > 0)
    text += std::to_string(rest) + " others save less\n";
  return text;
}

}  // namespace weft::apps
