#pragma once

#include <string>
#include <string_view>

#include "topology/machine.hpp"

namespace weft {

/// weft's own machine file: JSON, lossless (`read_machine_file(write_machine_file(m))` is `m`),
/// meant to be written by hand too. docs/machine-file.md describes it.
std::string write_machine_file(const Machine& machine);

/// Reads one. `name` names the source in errors and becomes `Machine::source` where the file has
/// none. Throws `TopologyError` with line and column, or with the path of the value
/// (`links[3].kind`), and what was expected.
Machine read_machine_file(std::string_view text, const std::string& name);

}  // namespace weft
