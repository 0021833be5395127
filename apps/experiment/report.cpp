#include "apps/experiment/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>

#include "apps/common/progress.hpp"
#include "apps/experiment/chart.hpp"
#include "apps/experiment/gantt.hpp"
#include "apps/experiment/report_style.hpp"
#include "apps/experiment/svg.hpp"
#include "topology/render.hpp"

namespace weft::experiment {
namespace {

using Results = std::vector<PointResult>;

std::string tag(const char* name, const std::string& text, const char* attributes = "") {
  return std::string("<") + name + attributes + ">" + escaped(text) + "</" + name + ">";
}

std::string percent(double share) {
  return std::to_string(std::lround(100 * share)) + " %";
}

// `12.3 GFLOP/s`, `450 MB/s`, empty where there is nothing to divide.
std::string rate(const RunRecord& run, double seconds) {
  const double amount = run.result.flops > 0 ? run.result.flops : run.result.bytes;
  if (!(seconds > 0) || !(amount > 0)) return "";
  const double per_second = amount / seconds;
  const bool is_giga = per_second >= 1e9;
  char text[48];
  std::snprintf(text, sizeof text, "%.3g %c%s", per_second / (is_giga ? 1e9 : 1e6),
                is_giga ? 'G' : 'M', run.result.flops > 0 ? "FLOP/s" : "B/s");
  return text;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

std::size_t device_count(const PointResult& result) {
  return result.any->device_names.size();
}

Results with_runs(const Results& results) {
  Results kept;
  for (const PointResult& result : results)
    if (!result.runs.empty()) kept.push_back(result);
  return kept;
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

std::string value_of(const RunRecord& record, const std::string& name) {
  for (const auto& [key, value] : coordinates_of(record))
    if (key == name) return value;
  return "";
}

// ---- charts of one workload

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

std::string times(const Results& results, const std::vector<std::string>& names) {
  if (const std::string size = size_parameter(results); !size.empty())
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

// Against the fewest devices with all else the same; nothing where no two numbers of devices are.
std::string speedups(const Results& results, const std::vector<std::string>& names) {
  auto all = series_of(
      results, names, "devices",
      [](const PointResult& result) { return static_cast<double>(device_count(result)); },
      time_mark);
  for (Series& each : all) {
    if (each.marks.empty()) continue;
    const double base = each.marks.front().value;
    for (Mark& mark : each.marks)
      mark = {mark.x, base / mark.value, base / mark.high, base / mark.low};
  }
  std::erase_if(all, [](const Series& each) {
    return each.marks.size() < 2 || each.marks.front().x == each.marks.back().x;
  });
  return all.empty() ? "" : speedup_chart(all);
}

std::string figure(const std::string& picture, const std::string& caption) {
  return "<figure>" + picture + "<figcaption>" + escaped(caption) + "</figcaption></figure>\n";
}

std::string charts(const Results& results) {
  const auto names = varying(results);
  const bool is_narrow = !size_parameter(results).empty();
  std::string text = std::string("<div class=\"") + (is_narrow ? "pair" : "wide") + "\">\n";
  text += figure(times(results, names),
                 "Medians of the runs; bars reach from the fastest to the slowest.");
  if (const std::string picture = speedups(results, names); !picture.empty())
    text += figure(picture,
                   "Speed-up over the fewest devices of the same line; dashed: as many times as "
                   "devices.");
  return text + "</div>\n";
}

// ---- timelines of one workload: a run of each machine and engine, on the most devices

std::vector<const RunRecord*> shown_runs(const Results& results) {
  std::vector<const RunRecord*> chosen;
  for (const PointResult& result : results)
    for (const RunRecord* run : result.runs) {
      if (!run->timeline || run->timeline->lanes.empty()) continue;
      const auto same = std::find_if(chosen.begin(), chosen.end(), [&](const RunRecord* each) {
        return each->machine == run->machine && each->engine == run->engine;
      });
      if (same == chosen.end())
        chosen.push_back(run);
      else if (run->device_names.size() >= (*same)->device_names.size())
        *same = run;
    }
  return chosen;
}

std::string timelines(const Results& results) {
  std::string text;
  auto names = varying(results);
  std::erase_if(names,
                [](const std::string& name) { return name == "machine" || name == "engine"; });
  for (const RunRecord* run : shown_runs(results)) {
    std::ostringstream caption;
    const auto& activity = run->activity;
    caption << apps::format_seconds(run->result.seconds) << ", critical path "
            << apps::format_seconds(activity.critical_path_seconds)
            << ", no order of these ops is faster than "
            << apps::format_seconds(activity.lower_bound_seconds);
    if (activity.transfer_seconds > 0)
      caption << "; transfers " << apps::format_seconds(activity.transfer_seconds) << ", "
              << percent(activity.hidden) << " of it under compute, "
              << apps::format_seconds(activity.exposed_seconds) << " exposed";
    caption << ".";
    std::string heading = run->machine + ", " + run->engine;
    if (const std::string rest = label_of(*run, names); !rest.empty()) heading += ": " + rest;
    text += tag("h4", heading) + "\n" + figure(gantt(*run), caption.str());
  }
  return text.empty() ? "" : "<h3>What ran when</h3>\n" + text;
}

// ---- the table of one workload

std::string fixed_values(const Results& results, const std::vector<std::string>& names) {
  std::string text;
  for (const auto& [name, value] : coordinates_of(*results.front().any))
    if (std::find(names.begin(), names.end(), name) == names.end())
      text += (text.empty() ? "" : ", ") + name + " = " + value;
  return text;
}

std::string row(const PointResult& result, const std::vector<std::string>& names) {
  std::string cells;
  for (const std::string& name : names) cells += tag("td", value_of(*result.any, name));
  if (result.runs.empty())
    return "<tr class=\"failed\">" + cells + tag("td", result.error, " colspan=\"10\"") + "</tr>\n";
  const RunRecord& run = result.typical();
  const auto number = [&](const std::string& text) {
    cells += tag("td", text, " class=\"number\"");
  };
  number(std::to_string(result.runs.size()));
  number(apps::format_seconds(result.median));
  number(apps::format_seconds(result.least));
  number(apps::format_seconds(result.most));
  number(percent(result.spread()));
  number(rate(run, result.median));
  const bool has_transfers = run.activity.transfer_seconds > 0;
  number(has_transfers ? percent(run.activity.hidden) : "");
  number(has_transfers ? apps::format_seconds(run.activity.exposed_seconds) : "");
  number(apps::format_seconds(run.activity.critical_path_seconds));
  const bool is_checked = run.result.check.rfind("checked", 0) == 0;
  cells += tag("td", result.error.empty() ? (is_checked ? "✓" : run.result.check) : result.error);
  return (result.error.empty() ? "<tr>" : "<tr class=\"failed\">") + cells + "</tr>\n";
}

std::string table(const Results& results) {
  const auto names = varying(results);
  std::string text = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const std::string& name : names) text += tag("th", name);
  for (const char* heading :
       {"runs", "median", "min", "max", "spread", "rate", "hidden", "exposed", "critical path"})
    text += tag("th", heading, " class=\"number\"");
  text += tag("th", "check") + "</tr></thead>\n<tbody>\n";
  for (const PointResult& result : results) text += row(result, names);
  text += "</tbody></table></div>\n";
  std::string notes = "In all of them: " + fixed_values(results, names) + ".";
  const Results good = with_runs(results);
  if (!good.empty() && good.front().typical().result.check.rfind("checked", 0) == 0)
    notes += " ✓ " + good.front().typical().result.check + ".";
  return text + tag("p", notes, " class=\"note\"") + "\n";
}

// ---- the page

std::string section(const std::string& workload, const Results& results) {
  std::string text = "<section id=\"" + escaped(workload) + "\">\n" + tag("h2", workload) + "\n" +
                     tag("p", workloads::find(workload).description) + "\n";
  const Results good = with_runs(results);
  if (!good.empty()) text += charts(good);
  text += "<h3>All results</h3>\n" + table(results);
  if (!good.empty()) text += timelines(good);
  return text + "</section>\n";
}

std::string heading(const Spec& spec, const Results& results, const Outcome& outcome) {
  std::size_t runs = 0, failed = 0;
  std::set<std::string> engines;
  for (const PointResult& result : results) {
    runs += result.runs.size();
    failed += !result.error.empty();
    engines.insert(result.any->engine);
  }
  std::ostringstream text;
  text << tag("h1", spec.name) << "\n<p class=\"lead\">" << runs << " runs of " << results.size()
       << " points on " << outcome.machines.size()
       << (outcome.machines.size() == 1 ? " machine" : " machines");
  if (failed) text << ", <strong>" << failed << " of them failed</strong>";
  if (!outcome.left_out.empty()) text << ", " << outcome.left_out.size() << " points left out";
  text << ".</p>\n";
  if (engines.count("emulated"))
    text << tag("p",
                "Emulated GPUs compute real numbers on this host's cores: kernels are as fast as "
                "the host or as the option emulated says, copies as the links of the machine. What "
                "overlaps is real, kernels' times are the host's.",
                " class=\"note\"")
         << "\n";
  if (engines.count("simulated"))
    text << tag("p",
                "Simulated runs take virtual time, as the machine's figures and the kernels' "
                "costs say.",
                " class=\"note\"")
         << "\n";
  return text.str();
}

std::string machines(const Outcome& outcome) {
  std::string text = "<section id=\"machines\">\n<h2>Machines</h2>\n";
  for (const UsedMachine& each : outcome.machines)
    text += "<details><summary>" + escaped(each.label) +
            (each.label == each.source ? "" : ": " + escaped(each.source)) + "</summary>\n" +
            "<div class=\"scroll\">" + render_svg(each.machine) + "</div></details>\n";
  return text + "</section>\n";
}

std::string left_out(const Outcome& outcome) {
  if (outcome.left_out.empty()) return "";
  std::string text = "<section id=\"left-out\">\n<h2>Left out</h2>\n<ul>\n";
  for (const LeftOut& each : outcome.left_out)
    text += tag("li", each.point.key() + ": " + each.reason) + "\n";
  return text + "</ul>\n</section>\n";
}

}  // namespace

std::string report(const Spec& spec, const Results& results, const Outcome& outcome) {
  std::vector<std::string> order;
  std::map<std::string, Results> of_workload;
  for (const PointResult& result : results) {
    Results& list = of_workload[result.any->workload];
    if (list.empty()) order.push_back(result.any->workload);
    list.push_back(result);
  }
  std::string nav = "<nav>", body;
  for (const std::string& workload : order) {
    nav += "<a href=\"#" + escaped(workload) + "\">" + escaped(workload) + "</a> ";
    body += section(workload, of_workload[workload]);
  }
  nav += "<a href=\"#machines\">machines</a> <a href=\"#spec\">spec</a></nav>\n";
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n" +
         std::string("<meta name=\"viewport\" content=\"width=device-width\"/>\n") +
         tag("title", spec.name) + "\n<style>" + kReportStyle + "</style>\n</head>\n<body>\n" +
         heading(spec, results, outcome) + nav + body + machines(outcome) + left_out(outcome) +
         "<section id=\"spec\">\n<h2>Spec</h2>\n" + tag("pre", spec.text) + "\n</section>\n" +
         "</body>\n</html>\n";
}

}  // namespace weft::experiment
