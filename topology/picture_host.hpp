#pragma once

#include <set>

#include "topology/machine.hpp"
#include "topology/picture.hpp"

namespace weft {

/// Lays out one host, whose nodes are `nodes`, with its upper left corner at 0, 0.
Picture::Host lay_out_host(const Machine& machine, const std::set<Node>& nodes);

}  // namespace weft
