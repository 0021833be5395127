#include "apps/experiment/workload_charts.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "apps/experiment/chart.hpp"
#include "apps/experiment/svg.hpp"

namespace weft::experiment {
namespace {

using Results = std::vector<PointResult>;

constexpr std::size_t kMostLines = 8;  // that one chart shows well

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// The parameter that takes the most different numbers; empty if none takes two.
std::string size_parameter(const Results& results) {
  std::map<std::string, std::set<std::string>> values;
  std::set<std::string> words;
  for (const PointResult& result : results)
    for (const auto& [name, value] : result.any->parameters) {
      values[name].insert(value);
      if (!is_number(value)) words.insert(name);
    }
  std::string best;
  for (const auto& [name, all] : values)
    if (!words.count(name) && all.size() > 1 && (best.empty() || all.size() > values[best].size()))
      best = name;
  return best;
}

template <class X, class Value>
std::vector<Series> series_of(const Results& results, const std::vector<std::string>& names,
                              const std::string& but, X x, Value mark) {
  std::vector<Series> all;
  for (const PointResult& result : results) {
    const std::string label = label_of(*result.any, names, but);
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const Series& each) { return each.label == label; });
    if (found == all.end()) found = all.insert(all.end(), Series{label, {}});
    Mark made = mark(result);
    made.x = x(result);
    found->marks.push_back(made);
  }
  for (Series& each : all)
    std::stable_sort(each.marks.begin(), each.marks.end(),
                     [](const Mark& a, const Mark& b) { return a.x < b.x; });
  return all;
}

Mark time_mark(const PointResult& result) {
  return {0, result.median, result.least, result.most};
}

std::string times(const Results& results, const std::vector<std::string>& names,
                  const std::string& size) {
  if (!size.empty())
    return line_chart(
        size, series_of(
                  results, names, size,
                  [&](const PointResult& result) { return std::stod(value_of(*result.any, size)); },
                  time_mark));
  std::vector<Row> rows;
  std::vector<std::string> machines;
  for (const PointResult& result : results) {
    const std::string machine = result.any->machine + " " + result.any->engine;
    auto group = std::find(machines.begin(), machines.end(), machine);
    if (group == machines.end()) group = machines.insert(machines.end(), machine);
    std::string label = label_of(*result.any, names);
    if (label.empty()) label = result.any->machine + ", " + result.any->devices;
    rows.push_back({label, time_mark(result), static_cast<std::size_t>(group - machines.begin())});
  }
  return dot_plot(rows);
}

// Devices of one kind are comparable: `gpu`, `socket`; empty for a mixture.
std::string kind_of(const PointResult& result) {
  std::set<std::string> kinds;
  for (const std::string& name : result.any->device_names)
    kinds.insert(name.substr(0, name.find_first_of("0123456789")));
  return kinds.size() == 1 ? *kinds.begin() : "";
}

// Against the fewest devices with all else the same; nothing where no two numbers of devices are.
std::string speedups(const Results& results, const std::vector<std::string>& names) {
  std::vector<Series> all;
  for (const std::string kind : {"gpu", "socket"}) {
    Results alike;
    for (const PointResult& result : results)
      if (kind_of(result) == kind) alike.push_back(result);
    for (Series& each : series_of(
             alike, names, "devices",
             [](const PointResult& result) {
               return static_cast<double>(result.any->device_names.size());
             },
             time_mark)) {
      auto& marks = each.marks;  // `2 gpus` and `gpus` may be the same
      marks.erase(std::unique(marks.begin(), marks.end(),
                              [](const Mark& a, const Mark& b) { return a.x == b.x; }),
                  marks.end());
      if (marks.size() < 2) continue;
      const double base = marks.front().value;
      for (Mark& mark : marks)
        mark = {mark.x, base / mark.value, base / mark.high, base / mark.low};
      if (kind == "socket") each.label += each.label.empty() ? "sockets" : ", sockets";
      all.push_back(each);
    }
  }
  return all.empty() ? "" : speedup_chart(all);
}

// Times, and speed-ups where there are, side by side if both are small.
std::string pair_of(const Results& results, const std::string& size, const std::string& whose) {
  const auto names = varying(results);
  std::string text = std::string("<div class=\"") + (size.empty() ? "wide" : "pair") + "\">\n";
  text += figure(times(results, names, size),
                 whose + "Medians of the runs; bars reach from the fastest to the slowest.");
  if (const std::string picture = speedups(results, names); !picture.empty())
    text += figure(picture, whose +
                                "Speed-up over the fewest devices of the same line; dashed: as "
                                "many times as devices.");
  return text + "</div>\n";
}

}  // namespace

std::string figure(const std::string& picture, const std::string& caption) {
  return "<figure>" + picture + "<figcaption>" + escaped(caption) + "</figcaption></figure>\n";
}

std::string charts(const std::vector<PointResult>& results) {
  const std::string size = size_parameter(results);
  const auto names = varying(results);
  std::set<std::string> lines;
  std::vector<std::pair<std::string, Results>> machines;
  for (const PointResult& result : results) {
    lines.insert(label_of(*result.any, names, size));
    const std::string machine = result.any->machine + ", " + result.any->engine;
    auto found = std::find_if(machines.begin(), machines.end(),
                              [&](const auto& each) { return each.first == machine; });
    if (found == machines.end()) found = machines.insert(found, {machine, {}});
    found->second.push_back(result);
  }
  if (size.empty() || lines.size() <= kMostLines || machines.size() < 2)
    return pair_of(results, size, "");
  std::string text;
  for (const auto& [machine, list] : machines) text += pair_of(list, size, machine + ". ");
  return text;
}

}  // namespace weft::experiment
