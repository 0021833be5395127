#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "apps/bench/campaign.hpp"
#include "apps/bench/device_commands.hpp"
#include "apps/bench/measurement.hpp"
#include "apps/commands.hpp"
#include "apps/common/options.hpp"
#include "apps/common/output.hpp"

namespace weft::apps {
namespace {

std::shared_ptr<CommonOptions> add_json(CLI::App& command) {
  auto options = std::make_shared<CommonOptions>();
  command.add_option("--json", options->json, "write results as JSON to this file, - for stdout");
  return options;
}

std::unique_ptr<Output> open(const std::shared_ptr<CommonOptions>& options) {
  return std::make_unique<Output>(*options);
}

void finish(int exit_code) {
  if (exit_code) throw CLI::RuntimeError(exit_code);
}

void add_dispatch(CLI::App& bench) {
  auto* command = bench.add_subcommand(
      "dispatch", "what an op costs, beside other systems that run the same graphs");
  auto options = std::make_shared<bench::DispatchOptions>();
  command
      ->add_option("--graph", options->graphs,
                   "chain, wide, fork-join, stencil, fft, random, nocomm; PATTERN:WIDTH for "
                   "another width than the usual one")
      ->delimiter(',');
  command->add_option("--ops", options->ops, "ops of a graph (default: 10^3 to 10^6)")
      ->delimiter(',');
  command
      ->add_option(
          "--system", options->systems,
          "weft-host, weft-emulated, weft-anywhere, weft-plan, weft-plan-emulated, tbb-flow, "
          "tbb-flow-reused, tbb-group, openmp, openmp-reused, starpu-stf (default: all that "
          "are built in but plans and what is reused)")
      ->delimiter(',');
  command
      ->add_option("--threads", options->threads,
                   "threads that run ops, one a core (default: 1 and all cores)")
      ->delimiter(',');
  command
      ->add_option("--repeats", options->repeats,
                   "rounds; each makes every measurement in a process of its own")
      ->check(CLI::Range(1u, 1000u));
  command->add_flag("--metg", options->metg, "how short ops may be at 50 % and 80 % efficiency");
  command->add_flag("--handoff", options->hand_off,
                    "one op to an idle system and back, and what an idle system costs");
  command->add_flag("--memory", options->memory, "bytes of a pending op");
  command->add_flag("--trace-cost", options->trace_cost, "recording on against off");
  command->add_option("--admission", options->admission,
                      "ops that weft takes in ahead of execution (default: the runtime's)");
  command->add_flag("--check", options->check,
                    "also make sure that every system runs each op once and in order");
  const auto json = add_json(*command);
  command->footer(
      "Without a mode, empty ops: nanoseconds from submission to release, per op.\n"
      "JSON: {\"results\":[{\"system\",\"graph\",\"width\",\"ops\",\"threads\",\"ns_per_op\",\n"
      "\"min_ns_per_op\",\"max_ns_per_op\",\"cpu_ns_per_op\",\"peak_rss_bytes\",\n"
      "\"rss_before_bytes\",\"rounds\"}], \"metg\":[{…,\"d50_ns\",\"d80_ns\"}],\n"
      "\"hand_off\":[{…,\"round_trip_ns\",\"after_idle_ns\",\"idle_cores\"}],\n"
      "\"memory\":[{…,\"bytes_per_op\"}], \"trace_cost\":[{…,\"op_ns\",\"trace\"}],\n"
      "\"machine\":{\"cores\",\"hop_ns\",\"wake_ns\",\"both_cores_ratio\"},\n"
      "\"left_out\":{system: why}, \"failed\":[{…,\"failure\"}]}; null for a figure never "
      "reached.");
  command->callback([options, json] { finish(bench::run_dispatch(*options, *open(json))); });
}

void add_matmul(CLI::App& bench) {
  auto* command = bench.add_subcommand(
      "matmul", "a socket's fp32 product beside OpenBLAS with its own threads on the same cores");
  auto options = std::make_shared<bench::FigureOptions>();
  options->repeats = 5;
  command->add_option("--n", options->n, "rows and columns")->check(CLI::Range(1u, 32768u));
  command->add_option("--threads", options->threads, "cores (default: all)");
  command->add_option("--repeats", options->repeats, "rounds, each in processes of their own")
      ->check(CLI::Range(1u, 1000u));
  const auto json = add_json(*command);
  command->footer(
      "JSON: {\"results\":[{\"system\",\"n\",\"threads\",\"flops_per_second\"}], \"ratio\"}");
  command->callback([options, json] { finish(bench::run_matmul(*options, *open(json))); });
}

void add_overlap(CLI::App& bench) {
  auto* command = bench.add_subcommand(
      "overlap", "two emulated GPUs with 1 ms kernels: both at once, and run and copy at once");
  auto options = std::make_shared<bench::FigureOptions>();
  command->add_option("--kernels", options->kernels, "kernels a GPU runs")
      ->check(CLI::Range(1u, 10'000u));
  command->add_option("--repeats", options->repeats, "rounds, each in a process of its own")
      ->check(CLI::Range(1u, 1000u));
  const auto json = add_json(*command);
  command->footer("JSON: {\"experiments\":[{\"name\",\"seconds\",\"ideal_seconds\",\"ratio\"}]}");
  command->callback([options, json] { finish(bench::run_overlap(*options, *open(json))); });
}

// What a measurement's own process is started with.
void add_measure(CLI::App& bench) {
  auto* command = bench.add_subcommand("measure", "")->group("");
  auto text = std::make_shared<std::string>();
  command->add_option("measurement", *text)->required();
  command->callback([text] {
    const auto figures = bench::measure(bench::measurement_from(*text));
    std::puts(bench::to_text(figures).c_str());
  });
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto* bench = app.add_subcommand("bench", "measure weft, beside other systems");
  bench->require_subcommand(1);
  add_dispatch(*bench);
  add_matmul(*bench);
  add_overlap(*bench);
  bench::add_device_commands(*bench);
  add_measure(*bench);
}

}  // namespace weft::apps
