#pragma once

#include "topology/machine_edit.hpp"

namespace CLI {
class App;
}

namespace weft {

/// Adds `--set`, `--remove` and `--add` to `command`; each may be given several times. `edits`
/// outlives the command.
void add_edit_options(CLI::App& command, MachineEdits& edits);

}  // namespace weft
