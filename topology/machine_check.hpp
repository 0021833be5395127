#pragma once

#include <string>

#include "topology/machine.hpp"

namespace weft {

/// Throws `TopologyError` naming the first place where a machine contradicts itself: an id that is
/// not there, a hardware thread in two sockets or in no core, a link from a node to itself, a
/// negative or infinite rate. What every importer yields passes.
void check_machine(const Machine& machine);

}  // namespace weft
