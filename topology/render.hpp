#pragma once

#include <string>

#include "topology/machine.hpp"

namespace weft {

/// The machine as a Graphviz graph: a cluster per socket, every other node and every link by
/// itself, pen width by rate.
std::string render_dot(const Machine& machine);

/// The machine as a picture for a talk, a complete SVG document without outside references: sockets
/// with their memories on top, host bridges and switches below, GPUs in one row with their fabric
/// under them, adapters and disks beside. Lines are as thick as they are fast and labelled in GB/s;
/// `~` marks an assumed figure. Of more than four hosts the first three are drawn.
std::string render_svg(const Machine& machine);

}  // namespace weft
