#pragma once

#include <string>

#include "actors/runtime.hpp"
#include "topology/machine_edit.hpp"

namespace CLI {
class App;
}

namespace weft::apps {

/// What every command that runs ops takes: which machine, which engine, what to write.
struct CommonOptions {
  std::string
      machine;         ///< `--machine`: a file, shipped machine or description; empty: this machine
  MachineEdits edits;  ///< `--set`, `--remove`, `--add`: changes to that machine, or to this one
  std::string gpus;    ///< `--gpus auto|cuda|emulated:N|none`; empty: `WEFT_GPUS` or auto
  bool simulate = false;    ///< `--simulate`: in virtual time; else `WEFT_SIMULATE`
  std::string data;         ///< `--data real|none` of a simulation; empty: `WEFT_DATA` or real
  std::string calibration;  ///< `--calibration FILE` of a simulation; empty: `WEFT_CALIBRATION`
  bool no_p2p = false;      ///< `--no-p2p`: copies between GPUs go through host memory
  std::string emulated;     ///< `--emulated flops=1e12,link=12GB`; empty: `WEFT_EMULATED`
  std::string memory;       ///< `--memory gpu0=2GB`; empty: `WEFT_MEMORY`
  std::string lanes;        ///< `--lanes cores|threads|fast-cores`; empty: `WEFT_LANES` or cores
  std::string spill;        ///< `--spill DIR`; empty: `WEFT_SPILL`
  std::string trace;        ///< `--trace FILE`: Chrome/Perfetto JSON; empty: none
  std::string json;         ///< `--json FILE`, `-` for standard output; empty: none
};

/// Adds the options to `command`; `options` outlives it.
void add_common_options(CLI::App& command, CommonOptions& options);

/// As runtime options; an edited machine's GPUs are emulated, also where it is this one; `record`
/// switches the recorder on (always on with `--trace`). Throws `DeviceError`, `TopologyError` or
/// `CalibrationError` for values that are not understood.
RuntimeOptions to_runtime_options(const CommonOptions& options, bool record);

}  // namespace weft::apps
