#pragma once

#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// What differs from one machine to another, one line each: `mem0.bytes: 68719476736 ->
/// 137438953472`,
/// `+ nvlink gpu0-gpu1 …`, `- gpu3 …`. Things are compared by id, links by kind and ends. `source`
/// and warnings are left out. Empty if nothing differs.
std::vector<std::string> differences(const Machine& before, const Machine& after);

}  // namespace weft
