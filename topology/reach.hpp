#pragma once

#include "topology/machine.hpp"

namespace weft {

/// Adds one warning `not_connected` that lists what no link joins to the rest of the machine; takes
/// an earlier one away. Nothing where all is joined.
void warn_unreachable(Machine& machine);

}  // namespace weft
