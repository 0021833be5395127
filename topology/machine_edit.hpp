#pragma once

#include <string>

#include "topology/machine.hpp"

namespace weft {

/// The machine with one figure changed. `assignment` is `PATH=VALUE`; PATH is `source`, or an id
/// and a key of the machine file: `link3.bytes_per_second=12 GB/s`, `mem0.bytes=64 GB`,
/// `gpu1.model=…`; VALUE is JSON or a text. Throws `TopologyError` naming path or value.
Machine with_value(const Machine& machine, const std::string& assignment);

/// The machine without one thing: `gpu1`, `link3`, `nic0`, `socket1`, …, or `gpu0-gpu1`, all links
/// between two nodes. Its links, and for a GPU or disk its own memory, go with it; later ids move
/// down. Throws `TopologyError` if there is no such thing.
Machine without(const Machine& machine, const std::string& thing);

}  // namespace weft
