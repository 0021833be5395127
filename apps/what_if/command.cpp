// `weft what-if`: what bounds a program on a simulated machine.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "actors/simulated/scale.hpp"
#include "apps/commands.hpp"
#include "apps/common/options.hpp"
#include "apps/common/output.hpp"
#include "apps/common/progress.hpp"
#include "apps/what_if/gains.hpp"
#include "apps/what_if/program.hpp"

namespace weft::apps {
namespace {

struct Options {
  CommonOptions common;
  std::vector<std::string> program, targets;
  std::size_t top = 5;
  double factor = 2;
};

void run(Options options, const CLI::App& app) {
  if (options.program.empty())
    throw std::runtime_error(
        "what-if: wants a program after --: weft what-if -- overlap --machine dgx-a100, or "
        "weft what-if -- ./my_program");
  Output output(options.common);
  for (const std::string& target : options.targets) check_scale_target(target);
  const auto is_it = [&](const CLI::App* command) {
    return command->get_name() == options.program[0];
  };
  if (!app.get_subcommands(is_it).empty())
    options.program.insert(options.program.begin(), kThisProgram);
  SimulatedRun whole = run_simulated(options.program, "", false);
  if (!options.targets.empty()) whole.targets = options.targets;
  Progress progress(output.text(), "what if", whole.targets.size(), "runs");
  std::uint64_t done = 0;
  const WhatIf what_if =
      try_each(whole.seconds, whole.targets, options.factor, [&](const std::string& scale) {
        progress.update(done++, scale);
        return run_simulated(options.program, scale, true).seconds;
      });
  progress.finish();
  output.print("%s", table_of(what_if, options.top).c_str());
  nlohmann::ordered_json json{{"seconds", what_if.seconds}, {"factor", what_if.factor}};
  json["gains"] = nlohmann::ordered_json::array();
  for (const Gain& gain : what_if.gains)
    json["gains"].push_back(
        {{"target", gain.target}, {"seconds", gain.seconds}, {"saved", what_if.saved(gain)}});
  output.write_json(json.dump());
}

}  // namespace

void add_what_if_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "what-if",
      "run a program in virtual time, once more for each thing that it uses made twice as fast, "
      "and say what would help most: weft what-if -- COMMAND OPTIONS, or -- ./PROGRAM ARGUMENTS");
  command->add_option("PROGRAM", options->program,
                      "behind --: a weft command with its options, or a program built on weft; it "
                      "is run several times");
  command->add_option("--top", options->top, "lines to print (default: 5)")
      ->check(CLI::PositiveNumber);
  command->add_option("--factor", options->factor, "how many times as fast (default: 2)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--only", options->targets,
                   "try this instead of all that is used, such as link:pcie, link3, "
                   "link:nvlink.latency, gpu.flops, gpu1.memory, gpu.launch, socket.cores, "
                   "program.submission; may be given several times")
      ->allow_extra_args(false);
  command->add_option("--json", options->common.json,
                      "write results as JSON to this file, - for stdout");
  command->callback([options, &app] { run(*options, app); });
}

}  // namespace weft::apps
