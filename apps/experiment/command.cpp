// `weft experiment`: workloads over machines, engines, sizes and devices, from one file to a
// report.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "apps/commands.hpp"
#include "apps/common/options.hpp"
#include "apps/common/output.hpp"
#include "apps/common/progress.hpp"
#include "apps/common/table.hpp"
#include "apps/experiment/report.hpp"
#include "apps/experiment/results.hpp"
#include "apps/experiment/run_log.hpp"
#include "apps/experiment/runner.hpp"
#include "apps/experiment/spec.hpp"

namespace weft::apps {
namespace {

namespace fs = std::filesystem;
using namespace experiment;  // NOLINT

struct Options {
  CommonOptions common;
  std::string spec, out;
  bool resume = false, dry_run = false, list = false;
};

fs::path folder_of(const Options& options) {
  if (!options.out.empty()) return options.out;
  return fs::path(options.spec).stem().string() + ".results";
}

void list_workloads(const Output& output) {
  for (const auto& workload : workloads::all()) {
    output.print("%s: %s\n", workload.name.c_str(), workload.description.c_str());
    for (const auto& each : workload.parameters)
      output.print("    %-12s %s; %s (%s)\n", each.name.c_str(), each.meaning.c_str(),
                   each.allowed().c_str(), each.standard.c_str());
  }
}

void print_points(const Output& output, const Spec& spec, const std::vector<Point>& points) {
  for (const Point& point : points) output.print("%s\n", point.key().c_str());
  output.print("%zu points, %d runs each: %zu runs; nothing was run\n", points.size(), spec.repeats,
               points.size() * static_cast<std::size_t>(spec.repeats));
}

void print_results(const Output& output, const std::vector<PointResult>& results) {
  std::map<std::string, std::vector<PointResult>> of_workload;
  for (const PointResult& result : results) of_workload[result.any->workload].push_back(result);
  Table table({"workload", "what differs", "runs", "median", "spread", "hidden"});
  for (const auto& [workload, list] : of_workload) {
    const auto names = varying(list);
    for (const PointResult& result : list) {
      const std::string label = label_of(*result.any, names);
      if (result.runs.empty()) {
        table.add({workload, label, "failed"});
        continue;
      }
      const auto& activity = result.typical().activity;
      char spread[32], hidden[32] = "";
      std::snprintf(spread, sizeof spread, "%.0f %%", 100 * result.spread());
      if (activity.transfer_seconds > 0)
        std::snprintf(hidden, sizeof hidden, "%.0f %%", 100 * activity.hidden);
      table.add({workload, label, std::to_string(result.runs.size()), format_seconds(result.median),
                 spread, hidden});
    }
  }
  output.print("\n%s\n", table.text().c_str());
}

// One line for each different reason.
void print_left_out(const Output& output, const std::vector<LeftOut>& left_out) {
  std::map<std::string, std::pair<std::size_t, std::string>> of_reason;
  for (const LeftOut& each : left_out) {
    auto& [count, first] = of_reason[each.reason];
    if (count++ == 0) first = each.point.key();
  }
  for (const auto& [reason, which] : of_reason)
    output.print("left out: %zu point%s such as %s: %s\n", which.first, which.first == 1 ? "" : "s",
                 which.second.c_str(), reason.c_str());
}

void throw_if_failed(const std::vector<PointResult>& results, const Outcome& outcome) {
  if (results.empty())
    throw std::runtime_error("experiment: nothing could be run: " +
                             outcome.left_out.front().reason);
  std::size_t failed = 0;
  std::string first;
  for (const PointResult& result : results) {
    if (result.error.empty()) continue;
    if (failed++ == 0) first = result.any->point + ": " + result.error;
  }
  if (failed)
    throw std::runtime_error("experiment: " + std::to_string(failed) + " of " +
                             std::to_string(results.size()) +
                             " points failed, the first: " + first);
}

void run(const Options& options) {
  Output output(options.common);
  if (options.list) return list_workloads(output);
  if (options.spec.empty())
    throw std::runtime_error("experiment: wants a spec, a file in YAML; --list shows workloads");
  const Spec spec = read_spec(options.spec);
  const std::vector<Point> points = expand(spec);
  if (options.dry_run) return print_points(output, spec, points);

  RunLog log(folder_of(options), spec.text, options.resume);
  if (!log.records().empty()) output.print("resumed: %zu runs are there\n", log.records().size());
  Progress progress(output.text(), spec.name,
                    points.size() * static_cast<std::size_t>(spec.repeats), "runs");
  const Outcome outcome =
      run_all(spec, points, log,
              [&](std::uint64_t done, const std::string& note) { progress.update(done, note); });
  progress.finish();

  const auto results = results_of(points, log.records());
  print_left_out(output, outcome.left_out);
  if (!results.empty()) {
    const auto json = to_json(spec, results, log.records(), outcome);
    write_text(log.folder() / "results.csv", to_csv(log.records()));
    write_text(log.folder() / "results.json", json.dump(1) + "\n");
    write_text(log.folder() / "report.html", report(spec, results, outcome));
    print_results(output, results);
    output.print("runs, results and report in %s: open %s\n", log.folder().c_str(),
                 (log.folder() / "report.html").c_str());
    output.write_json(json.dump());
  }
  throw_if_failed(results, outcome);
}

}  // namespace

void add_experiment_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "experiment", "run workloads over machines, engines, sizes and devices; write a report");
  command->add_option(
      "SPEC", options->spec,
      "what to run, in YAML: name, machines, calibration, engines (real, emulated, simulated), "
      "workloads, devices, options, repeats; see the README");
  command->add_flag("--resume", options->resume, "go on with what is in the folder");
  command->add_option("--out", options->out,
                      "folder for runs.jsonl, results.csv, results.json and report.html (default: "
                      "the spec's name and .results, here)");
  command->add_option("--json", options->common.json,
                      "write the results as JSON to this file too, - for stdout");
  command->add_flag("--dry-run", options->dry_run, "say what would be run");
  command->add_flag("--list", options->list, "say what workloads and parameters there are");
  command->callback([options] { run(*options); });
}

}  // namespace weft::apps
