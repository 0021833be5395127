#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/bundle.hpp"

namespace weft {

/// A member of a bundle as it runs beside others: on one of a few branches, each of which is in
/// order.
struct BranchTurn {
  std::uint32_t branch = 0;
  /// Members that must have ended, each on a branch of its own, none implied by another: the one
  /// before on this branch, if it has to be said, and what is needed from others.
  std::vector<std::uint32_t> behind;
};

/// About what a member takes on a large GPU, in ns: only to compare members. A kernel that does not
/// say what it costs counts as small.
double rough_ns(Op& op);

/// Puts the members on at most `most` branches, one after the other in their order: where each can
/// begin first, but on the branch of what it needs unless another gains more than the wait across
/// costs. So what needs nothing of the others runs beside them. `ns` are the members' times.
std::vector<BranchTurn> branch_out(const Bundle::Order& order, const std::vector<double>& ns,
                                   std::uint32_t most);

}  // namespace weft
