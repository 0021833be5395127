#pragma once

#include <set>
#include <string>
#include <vector>

#include "topology/machine.hpp"
#include "topology/picture.hpp"

namespace weft {

/// `~25 GB/s`: a link's rate, marked if it is assumed.
std::string rate_text(const Link& link);

/// Takes out of `links` the groups of equal ones that join every two of at least `least` nodes of
/// `kind`, and returns them.
std::vector<std::vector<const Link*>> take_cliques(std::vector<const Link*>& links, NodeKind kind,
                                                   std::size_t least);

/// Adds the bars and arcs of the fabric below the GPUs of a host whose boxes are laid out. `bottom`
/// is where the drawing ends so far; returns where it ends now.
double lay_out_fabric(const Machine& machine, const std::set<Node>& nodes, Picture::Host& host,
                      double bottom);

}  // namespace weft
