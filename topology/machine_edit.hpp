#pragma once

#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// The machine with one figure changed, or one for every thing that a pattern fits. `assignment` is
/// `PATH=VALUE`; PATH is `source`, or an id or pattern (see `find_things`) and a key of the machine
/// file: `link3.bytes_per_second=12 GB/s`, `mem0.bytes=64 GB`, `gpu*.model=…`,
/// `link:nvlink*.bytes_per_second=0`. The keys of a GPU's or disk's own memory follow `memory.`:
/// `gpu1.memory.bytes=40GB`. VALUE is JSON or a text. Throws `TopologyError` naming path or value.
Machine with_value(const Machine& machine, const std::string& assignment);

/// The machine without one thing, or without all that a pattern fits: `gpu1`, `link3`, `nic*`,
/// `link:nvlink*`, …, or `gpu0-gpu1`, all links between two nodes. Its links, and for a GPU or disk
/// its own memory, go with it; later ids move down. Throws `TopologyError` if there is no such
/// thing.
Machine without(const Machine& machine, const std::string& thing);

/// The machine with one thing more, like one it has; it gets the highest id. What is added is
/// `assumed`. `text` is one of
///
/// - `gpu like gpu0 [on socket1]`: a GPU with a memory of its own. Its links are those of the
///   model, to the same peers and switches; joined to the model too where the model and its peers
///   are all joined to each other. With `on`, PCIe leads to that socket's host bridge (made where
///   there is none), and links to the model's socket lead to that socket.
/// - `link like link3 from gpu0 to gpu2`: the first rate is the one from the first end.
/// - `socket like socket0`: with as many cores, hardware threads after the last, memories like
///   those of the model, a host bridge if the model has one, and a link to the model and to each
///   socket that the model is joined to.
///
/// Throws `TopologyError` naming what is not there or not understood.
Machine with_added(const Machine& machine, const std::string& text);

/// Edits as a command line gives them.
struct MachineEdits {
  std::vector<std::string> remove, add, set;

  [[nodiscard]] bool empty() const { return remove.empty() && add.empty() && set.empty(); }
};

/// The machine after all edits: first things are removed, then added, then figures set, each in the
/// order given. Throws `TopologyError`.
Machine edited(Machine machine, const MachineEdits& edits);

}  // namespace weft
