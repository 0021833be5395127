#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// Kinds of text a machine can be read from.
enum class MachineFormat : std::uint8_t { HwlocXml, NcclXml, SmiMatrix, WeftJson };

/// `hwloc XML`, `NCCL XML`, `nvidia-smi topo -m`, `weft machine file`.
const char* to_string(MachineFormat format);

/// The kind of a text, told by its content alone. `name` names the source in errors. Throws
/// `TopologyError` that lists what is understood where it is none of it.
MachineFormat recognise(std::string_view text, const std::string& name);

/// The machine a text of any of these kinds describes. `name` becomes `Machine::source` (but for a
/// weft machine file, which keeps its own) and names the source in errors. Throws `TopologyError`:
/// one line with source, place and what was expected. Time and memory are bounded by the text's
/// size.
Machine import_machine(std::string_view text, const std::string& name);

/// `import_machine` of a file's content. At most 64 MiB are read. Throws `TopologyError` also where
/// the file cannot be read.
Machine load_machine(const std::string& path);

}  // namespace weft
