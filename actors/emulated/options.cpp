#include "actors/emulated/options.hpp"

#include <charconv>
#include <map>
#include <sstream>
#include <vector>

#include "framework/failure.hpp"

namespace weft {
namespace {

const char* const kMayBeGiven =
    "may be given: flops=N, bandwidth=N, launch=TIME, link=N (bytes/s, or \"topology\"), "
    "latency=TIME, "
    "memory=SIZE, lanes=N, poison=0|1; numbers such as 1e12, 12GB, times such as 10us, 1ms";

[[noreturn]] void refuse(const std::string& part, const std::string& why) {
  throw DeviceError("emulated GPUs: \"" + part + "\" " + why + "; " + kMayBeGiven);
}

// A number and its unit's factor.
double number(const std::string& part, const std::string& text,
              const std::map<std::string, double>& units) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) refuse(part, "needs a number of 0 or more");
  const std::string unit(end, text.data() + text.size());
  if (value == 0 && unit.empty()) return 0;
  const auto found = units.find(unit);
  if (found == units.end()) refuse(part, "has the unknown unit \"" + unit + "\"");
  return value * found->second;
}

const std::map<std::string, double> kAmounts = {
    {"", 1},     {"K", 1e3},  {"M", 1e6},   {"G", 1e9},    {"T", 1e12},  {"KB", 1e3},
    {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}};
const std::map<std::string, double> kTimes = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

}  // namespace

EmulatedOptions parse_emulated_options(const std::string& text) {
  EmulatedOptions options;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    if (part.empty()) continue;
    const auto equals = part.find('=');
    if (equals == std::string::npos) refuse(part, "is not NAME=VALUE");
    const std::string name = part.substr(0, equals), value = part.substr(equals + 1);
    auto time = [&] {
      return std::chrono::nanoseconds(static_cast<std::int64_t>(number(part, value, kTimes)));
    };
    if (name == "flops") {
      options.flops_per_second = number(part, value, kAmounts);
    } else if (name == "bandwidth") {
      options.memory_bytes_per_second = number(part, value, kAmounts);
    } else if (name == "launch") {
      options.launch = time();
    } else if (name == "link") {
      options.link_bytes_per_second = value == "topology" ? -1 : number(part, value, kAmounts);
    } else if (name == "latency") {
      options.link_latency = time();
    } else if (name == "memory") {
      options.memory_bytes = static_cast<std::size_t>(number(part, value, kAmounts));
    } else if (name == "lanes") {
      const double lanes = number(part, value, {{"", 1}});
      if (lanes < 1 || lanes > 64) refuse(part, "is out of range, from 1 to 64");
      options.compute_lanes = static_cast<std::uint32_t>(lanes);
    } else if (name == "poison") {
      options.poison = number(part, value, {{"", 1}}) != 0;
    } else {
      refuse(part, "is not known");
    }
  }
  return options;
}

}  // namespace weft
