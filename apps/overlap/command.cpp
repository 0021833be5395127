// `weft overlap`: the two experiments of "Automatic Parallelism" (Dive into Deep Learning) and two
// more, timed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>

#include "actors/runtime_options.hpp"
#include "apps/commands.hpp"
#include "apps/common/options.hpp"
#include "apps/common/output.hpp"
#include "apps/common/progress.hpp"
#include "apps/overlap/model.hpp"
#include "apps/overlap/report.hpp"

namespace weft::apps {
namespace {

struct Options {
  CommonOptions common;
  std::int64_t n = 128;
  int ops = 50;
  int repeat = 5;
  std::string dtype = "f32", precision = "fp32", to = "pinned";
  std::vector<std::string> only;
  bool no_relay = false, plan = false;
};

bool is_wanted(const Options& options, const Experiment& experiment) {
  if (options.only.empty()) return experiment.is_usual;
  return std::find(options.only.begin(), options.only.end(), experiment.name) != options.only.end();
}

void check(const Options& options) {
  if (options.dtype == "f64" && options.precision != "fp32")
    throw std::invalid_argument("--precision " + options.precision +
                                ": is of products of f32 matrices, but --dtype is f64");
}

RuntimeOptions runtime_options(const Options& options) {
  RuntimeOptions made = to_runtime_options(options.common, true);
  const char* variable = std::getenv("WEFT_EMULATED");
  const bool has_pace = made.emulated || (variable && *variable);
  made.precision = parse_precision(options.precision);
  made.relay = !options.no_relay;
  made = with_environment(std::move(made));
  if (!has_pace && !*made.simulate)
    made.emulated = paced_gpus(options.n, options.dtype == "f64" ? 8 : 4);
  return made;
}

// What ran on what, so that nobody takes an emulated GPU's figures for a GPU's.
void print_machine(const Output& output, const Runtime& rt, const Options& options,
                   const std::string& pace) {
  std::string devices;
  bool emulated = false;
  for (const Device& device : rt.devices()) {
    devices += (devices.empty() ? "" : ", ") + device.name() + " (" + rt.engine_of(device) + ")";
    emulated = emulated || rt.engine_of(device) == "emulated";
  }
  const std::string numbers =
      options.dtype + (options.precision == "fp32" ? "" : " (GPUs: " + options.precision + ")");
  output.print("%d matmuls of %lld x %lld, %s, on %s; median of %d runs\n", options.ops,
               static_cast<long long>(options.n), static_cast<long long>(options.n),
               numbers.c_str(), devices.c_str(), options.repeat);
  if (options.to == "pageable") output.print("results come to memory that the program allocated\n");
  if (options.plan) output.print("matmuls are recorded once and replayed\n");
  if (!emulated) return;
  const unsigned cores = std::thread::hardware_concurrency();
  output.print("emulated GPUs compute real numbers on this machine's %u hardware threads, ", cores);
  if (pace.empty())
    output.print(
        "as fast as these do it:\n"
        "  they share them, so two of them are not twice as fast; --emulated "
        "launch=1ms,link=100MB\n"
        "  paces them like devices of their own\n");
  else
    output.print("paced like devices of their own:\n  %s\n", pace.c_str());
}

void run(const Options& options) {
  check(options);
  Output output(options.common);
  const RuntimeOptions made = runtime_options(options);
  Workload workload;
  workload.n = options.n;
  workload.ops = options.ops;
  workload.is_double = options.dtype == "f64";
  workload.precision = parse_precision(options.precision);
  workload.is_planned = options.plan;
  workload.to_program = options.to == "pageable";
  workload.lanes = made.emulated->compute_lanes;
  const std::string pace = describe_pace(*made.emulated);
  const Runtime rt(made);
  print_machine(output, rt, options, pace);

  std::uint64_t total = 0, done = 0;
  std::unique_ptr<Progress> progress;
  const Measure measure(rt, options.repeat, [&] { progress->update(++done); });
  std::vector<Experiment> chosen;
  for (Experiment& experiment : experiments(rt, measure, workload)) {
    if (!is_wanted(options, experiment)) continue;
    if (experiment.gpus > rt.gpu_count()) {
      output.print("left out: \"%s\" needs %zu GPUs and there are %zu; see --gpus\n",
                   experiment.title.c_str(), experiment.gpus, rt.gpu_count());
      continue;
    }
    total += static_cast<std::uint64_t>(experiment.measurements * (options.repeat + 1));
    chosen.push_back(std::move(experiment));
  }
  if (chosen.empty()) throw std::runtime_error("overlap: nothing to run: give it GPUs with --gpus");
  progress = std::make_unique<Progress>(output.text(), "overlap", total, "runs");
  std::vector<std::vector<Row>> rows;
  for (const Experiment& experiment : chosen) rows.push_back(experiment.run());
  progress->finish();

  rt.wait_idle();
  const TraceData recording = rt.tracer()->collect();
  std::vector<Result> results;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    results.push_back(with_hidden(chosen[i].title, rows[i], recording));
  output.print("\n%s\n", to_table(results).c_str());
  output.print(
      "sum: the parts one after the other; max: the longest part, the ideal; ratio: time / max;\n"
      "hidden: share of transfer time under compute. %s\n",
      rt.has_data() ? "Results checked against dot products."
                    : "Nothing was computed, so nothing is checked.");
  output.write_trace(rt);
  output.write_json(to_json(results, rt, workload, options.repeat, pace));
}

}  // namespace

void add_overlap_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "overlap", "time what overlaps: two GPUs, run and copy, everything at once, small ops");
  add_common_options(*command, options->common);
  command->add_option("--n", options->n, "matrices are n x n")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 15))
      ->capture_default_str();
  command->add_option("--ops", options->ops, "matmuls on each device")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--repeat", options->repeat, "timed runs of each; the median counts")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->add_option("--dtype", options->dtype, "f32 or f64")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->capture_default_str();
  command
      ->add_option("--precision", options->precision,
                   "how GPUs compute products of f32 matrices: fp32, or with inputs rounded to "
                   "tf32 or bf16 on tensor cores; emulated GPUs always in fp32")
      ->check(CLI::IsMember({"fp32", "tf32", "bf16"}))
      ->capture_default_str();
  command
      ->add_option("--to", options->to,
                   "where results come to: pinned (weft's own host memory) or pageable (memory "
                   "that the program allocated and touched before)")
      ->check(CLI::IsMember({"pinned", "pageable"}))
      ->capture_default_str();
  command
      ->add_option("--only", options->only,
                   "some of two_gpus, copy, copy_both, all, small (default: all but copy_both)")
      ->delimiter(',')
      ->check(CLI::IsMember({"two_gpus", "copy", "copy_both", "all", "small"}));
  command->add_flag("--no-relay", options->no_relay,
                    "each GPU's results take its own link only, idle or not the others'");
  command->add_flag("--plan", options->plan,
                    "record the matmuls of each once and replay them (copies to the host are "
                    "submitted)");
  command->callback([options] { run(*options); });
}

}  // namespace weft::apps
