#include "apps/experiment/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>

#include "apps/common/progress.hpp"
#include "apps/experiment/gantt.hpp"
#include "apps/experiment/report_style.hpp"
#include "apps/experiment/svg.hpp"
#include "apps/experiment/workload_charts.hpp"
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

Results with_runs(const Results& results) {
  Results kept;
  for (const PointResult& result : results)
    if (!result.runs.empty()) kept.push_back(result);
  return kept;
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
