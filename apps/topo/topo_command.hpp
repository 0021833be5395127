#pragma once

#include <functional>
#include <optional>

#include "topology/doctor.hpp"
#include "topology/machine.hpp"
#include "topology/measurements.hpp"

namespace CLI {
class App;
}

namespace weft {

/// What the commands ask of the rest of weft, where it is there: `topology` knows no engine.
struct TopoHooks {
  /// Measures one link that a device engine drives (PCIe, NVLink …) of the live machine, alone and
  /// with its neighbours busy. Nothing if it cannot. Host memory and socket links are measured
  /// here.
  std::function<std::optional<LinkFigures>(const Machine&, LinkId)> measure_link;
  /// Adds what GPU libraries say: their lists of GPUs, pairs without peer access.
  std::function<void(SystemFacts&)> add_gpu_facts;
  /// The live machine with GPU facts merged; `discover()` if there is none.
  std::function<Machine()> discover_live;
};

/// Adds `topo` (with `topo diff`), `route` and `doctor` to a command line. They run while it is
/// parsed, print to standard output, and throw `TopologyError` for the caller to print with exit
/// code 1; `doctor` with something broken and `topo diff` with differences throw
/// `CLI::RuntimeError(1)`. Hooks are kept as long as the app.
void add_topo_command(CLI::App& app, TopoHooks hooks = {});

}  // namespace weft
