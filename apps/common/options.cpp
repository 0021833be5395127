#include "apps/common/options.hpp"

#include <CLI/CLI.hpp>

#include "actors/runtime_options.hpp"
#include "actors/simulated/calibration.hpp"
#include "topology/shipped.hpp"

namespace weft::apps {

void add_common_options(CLI::App& command, CommonOptions& options) {
  command.add_option("--machine", options.machine,
                     "run on this machine's topology instead of the live one: a file or shipped "
                     "machine as weft topo knows them, or e.g. \"2 sockets x 8 cores, 2 gpus, "
                     "nvlink\"; its GPUs are emulated, or simulated with --simulate");
  command.add_flag("--simulate", options.simulate,
                   "run the machine's sockets, GPUs and links in virtual time: right results, and "
                   "times by a model of the machine");
  command.add_option(
      "--data", options.data,
      "with --simulate: real (default), or none: only shapes move, results are zeros");
  command.add_option("--calibration", options.calibration,
                     "with --simulate: a file that weft calibrate wrote; devices and links of the "
                     "models in it take what was measured");
  command.add_option("--gpus", options.gpus, "auto, cuda, emulated:N or none (default: auto)");
  command.add_flag("--no-p2p", options.no_p2p, "copies between GPUs go through host memory");
  command.add_option("--emulated", options.emulated,
                     "how emulated GPUs behave, e.g. flops=1e12,launch=10us,link=12GB,memory=2GB");
  command.add_option("--trace", options.trace, "write a Chrome/Perfetto trace to this file");
  command.add_option("--json", options.json, "write results as JSON to this file, - for stdout");
}

RuntimeOptions to_runtime_options(const CommonOptions& options, bool record) {
  RuntimeOptions made;
  if (!options.machine.empty()) made.machine = machine_from(options.machine);
  if (!options.gpus.empty()) parse_gpus(options.gpus, made);
  if (!options.emulated.empty()) made.emulated = parse_emulated_options(options.emulated);
  if (options.no_p2p) made.p2p = false;
  if (options.simulate) made.simulate = true;
  if (!options.data.empty()) made.data = parse_data(options.data);
  if (!options.calibration.empty())
    made.calibration = std::make_shared<Calibration>(read_calibration_file(options.calibration));
  made.trace = record || !options.trace.empty();
  return made;
}

}  // namespace weft::apps
