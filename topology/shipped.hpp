#pragma once

#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// Names of the machines that come with weft, alphabetical: `dgx-a100`, `laptop` …. Their files,
/// with the sources of the figures, are in topology/machines.
std::vector<std::string> shipped_machines();

/// The text of one; empty if there is none of that name.
std::string shipped_machine_file(const std::string& name);

/// A machine by whatever names it: `live`, the path of a file, the name of a shipped machine, or a
/// description such as `2 sockets x 8 cores, 2 gpus`. Throws `TopologyError`.
Machine machine_from(const std::string& source);

}  // namespace weft
