#include "apps/common/options.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "actors/runtime_options.hpp"
#include "actors/simulated/calibration.hpp"
#include "apps/topo/edit_options.hpp"
#include "topology/discover.hpp"
#include "topology/shipped.hpp"
#ifdef WEFT_HAVE_CUDA
#include "actors/cuda/discover.hpp"
#endif

namespace weft::apps {
namespace {

/// The machine this runs on, with its GPUs as their driver sees them.
Machine live_machine() {
#ifdef WEFT_HAVE_CUDA
  return discover_with_cuda(read_gpu_facts());
#else
  return discover();
#endif
}

/// The machine to run on, or none for this one as it is.
std::optional<Machine> wanted_machine(const CommonOptions& options) {
  if (options.edits.empty()) {
    if (options.machine.empty()) return std::nullopt;
    return machine_from(options.machine);
  }
  const char* set = std::getenv("WEFT_MACHINE");
  const std::string named = !options.machine.empty() ? options.machine : set ? set : "";
  const bool live = named.empty() || named == "live";
  Machine machine = live ? live_machine() : machine_from(named);
  if (live) machine.source = "live, edited";  // described from here on: no engine drives it
  return edited(std::move(machine), options.edits);
}

}  // namespace

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
  add_edit_options(command, options.edits);
  command.add_option("--calibration", options.calibration,
                     "with --simulate: a file that weft calibrate wrote; devices and links of the "
                     "models in it take what was measured");
  command.add_option("--gpus", options.gpus, "auto, cuda, emulated:N or none (default: auto)");
  command.add_flag("--no-p2p", options.no_p2p, "copies between GPUs go through host memory");
  command.add_option("--emulated", options.emulated,
                     "how emulated GPUs behave, e.g. flops=1e12,launch=10us,link=12GB,memory=2GB");
  command.add_option("--memory", options.memory,
                     "what memories may hold, e.g. gpu0=2GB,gpu*=512MB,mem0=8GB; a working set "
                     "that does not fit is evicted to the host and brought back");
  command.add_option("--lanes", options.lanes,
                     "what of a socket runs ops: cores (default), threads (each hardware thread), "
                     "fast-cores (of a hybrid processor)");
  command.add_option("--spill", options.spill,
                     "a directory that host memories evict to when they are full; its disk's share "
                     "by --memory disk0=100GB, else 9/10 of what is free there");
  command.add_option("--trace", options.trace, "write a Chrome/Perfetto trace to this file");
  command.add_option("--json", options.json, "write results as JSON to this file, - for stdout");
}

RuntimeOptions to_runtime_options(const CommonOptions& options, bool record) {
  RuntimeOptions made;
  made.machine = wanted_machine(options);
  if (!options.gpus.empty()) parse_gpus(options.gpus, made);
  if (!options.emulated.empty()) made.emulated = parse_emulated_options(options.emulated);
  if (!options.memory.empty()) made.memory = options.memory;
  if (!options.lanes.empty()) made.socket_lanes = parse_socket_lanes(options.lanes);
  if (!options.spill.empty()) made.spill = options.spill;
  if (options.no_p2p) made.p2p = false;
  if (options.simulate) made.simulate = true;
  if (!options.data.empty()) made.data = parse_data(options.data);
  if (!options.calibration.empty())
    made.calibration = std::make_shared<Calibration>(read_calibration_file(options.calibration));
  made.trace = record || !options.trace.empty();
  return made;
}

}  // namespace weft::apps
