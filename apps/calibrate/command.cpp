// `weft calibrate`: how fast this machine's devices, links and memories are, for simulated ones.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "actors/runtime_options.hpp"
#include "apps/calibrate/check.hpp"
#include "apps/calibrate/measure.hpp"
#include "apps/commands.hpp"
#include "apps/common/options.hpp"
#include "apps/common/output.hpp"
#include "apps/common/progress.hpp"
#include "apps/common/table.hpp"

namespace weft::apps {
namespace {

namespace fs = std::filesystem;
using calibrate::Checked;
using calibrate::Report;

struct Options {
  CommonOptions common;
  std::string out = "calibration.json", check;
  bool quick = false;
  TopoHooks hooks;
};

Report report_to(const Output& output) {
  Report report;
  report.step = [&output](const std::string& text) { output.print("%s ...\n", text.c_str()); };
  report.line = [&output](const std::string& text) { output.print("  %s\n", text.c_str()); };
  return report;
}

RuntimeOptions live(const Options& options) {
  RuntimeOptions made;
  if (!options.common.gpus.empty()) parse_gpus(options.common.gpus, made);
  made.emulated = EmulatedOptions{};
  made.simulate = false;
  made.serial = false;
  return made;
}

// Before the work, so that a wrong path shows at once. What is there stays until there is better.
void try_to_write(const fs::path& path) {
  if (!std::ofstream(path, std::ios::app))
    throw std::runtime_error("--out " + path.string() +
                             ": cannot be written; expected a path in a folder that is there");
}

void measure(const Options& options, Output& output) {
  const RuntimeOptions machine = live(options);
  const bool was_there = fs::exists(options.out);
  try_to_write(options.out);
  std::string text;
  try {
    calibrate::Effort effort;
    if (options.quick) effort = {3, 0.03, 2048};
    text = write_calibration(calibrate::measure(machine, options.hooks, effort, report_to(output)));
  } catch (...) {
    if (!was_there) fs::remove(options.out);
    throw;
  }
  std::ofstream file(options.out, std::ios::trunc);
  if (!(file << text) || !file.flush())
    throw std::runtime_error("--out " + options.out + ": cannot be written");
  output.print("written to %s; use it with --simulate --calibration %s\n", options.out.c_str(),
               options.out.c_str());
  output.write_json(text);
}

void check(const Options& options, Output& output) {
  const auto calibration = std::make_shared<Calibration>(read_calibration_file(options.check));
  const std::vector<Checked> rows =
      calibrate::check(live(options), calibration, options.quick ? 3 : 7, report_to(output));
  Table table({"program", "measured", "least", "most", "predicted", "error"});
  nlohmann::ordered_json document{{"calibration", options.check},
                                  {"programs", nlohmann::json::array()}};
  for (const Checked& row : rows) {
    char error[32];
    std::snprintf(error, sizeof error, "%+.0f %%", 100 * row.error());
    table.add({row.program, format_seconds(row.measured.median), format_seconds(row.measured.least),
               format_seconds(row.measured.most), format_seconds(row.predicted), error});
    document["programs"].push_back({{"program", row.program},
                                    {"measured_seconds", row.measured.median},
                                    {"measured_least", row.measured.least},
                                    {"measured_most", row.measured.most},
                                    {"runs", row.measured.samples},
                                    {"predicted_seconds", row.predicted},
                                    {"error", row.error()}});
  }
  output.print("\n%s", table.text().c_str());
  output.write_json(document.dump(1));
}

}  // namespace

void add_calibrate_command(CLI::App& app, const TopoHooks& hooks) {
  auto options = std::make_shared<Options>();
  options->hooks = hooks;
  CLI::App* command = app.add_subcommand(
      "calibrate", "measure this machine's devices, links and memories, for simulated ones");
  command->add_option("--out", options->out, "the file to write (default: calibration.json)");
  command->add_option("--gpus", options->common.gpus,
                      "auto, cuda, emulated:N or none (default: auto)");
  command->add_flag("--quick", options->quick, "fewer repeats and smaller sizes");
  command->add_option("--check", options->check,
                      "measure nothing: run a few programs for real and simulated with this file, "
                      "and say how far off the prediction is");
  command->add_option("--json", options->common.json,
                      "write the result as JSON to this file too, - for stdout");
  command->callback([options] {
    Output output(options->common);
    if (options->check.empty())
      measure(*options, output);
    else
      check(*options, output);
  });
}

}  // namespace weft::apps
