#include "apps/workloads/values.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <utility>

namespace weft::workloads {
namespace {

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

}  // namespace

std::string Parameter::allowed() const {
  if (is_number())
    return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  std::string list;
  for (const std::string& each : words) list += (list.empty() ? "" : ", ") + each;
  return "one of " + list;
}

Parameter number(std::string name, std::int64_t standard, std::int64_t least, std::int64_t most,
                 std::string meaning) {
  return {std::move(name), std::move(meaning), std::to_string(standard), least, most, {}};
}

Parameter word(std::string name, std::vector<std::string> words, std::string meaning) {
  std::string first = words.at(0);
  return {std::move(name), std::move(meaning), std::move(first), 0, 0, std::move(words)};
}

Values::Values(std::vector<Parameter> parameters) : parameters_(std::move(parameters)) {
  for (const Parameter& parameter : parameters_) values_[parameter.name] = parameter.standard;
}

void Values::set(const std::string& name, const std::string& value) {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const Parameter& each) { return each.name == name; });
  if (found == parameters_.end()) {
    std::string names;
    for (const Parameter& each : parameters_) names += (names.empty() ? "" : ", ") + each.name;
    throw std::invalid_argument("\"" + name + "\" is no parameter; there are " + names);
  }
  bool fits = false;
  std::string stored = value;
  if (found->is_number()) {
    const auto parsed = whole_number(value);
    fits = parsed && *parsed >= found->least && *parsed <= found->most;
    if (fits) stored = std::to_string(*parsed);
  } else {
    fits = std::find(found->words.begin(), found->words.end(), value) != found->words.end();
  }
  if (!fits) throw std::invalid_argument(name + ": \"" + value + "\" is not " + found->allowed());
  values_[name] = std::move(stored);
}

std::int64_t Values::number(const std::string& name) const {
  return whole_number(values_.at(name)).value();
}

std::string Values::to_string() const {
  std::string text;
  for (const Parameter& each : parameters_)
    text += (text.empty() ? "" : ",") + each.name + "=" + values_.at(each.name);
  return text;
}

}  // namespace weft::workloads
