#pragma once

#include <cstdint>
#include <vector>

#include "framework/plan_graph.hpp"

namespace weft {

/// A plan in which some nodes stand for several: what goes to a device as one.
struct BundledPlan {
  PlanGraph graph;  ///< its slots and tensors are the plan's, in their order; nothing is counted
  /// By node of `graph`: the plan's nodes that it stands for, in order; a bundle's has no code, no
  /// arguments and no scalars yet.
  std::vector<std::vector<std::uint32_t>> members;
  std::size_t bundles = 0;  ///< nodes with more than one member
};

/// Puts nodes of one device together that follow each other, of those with `may_bundle`. A node
/// joins a bundle of its device if it needs a member's data, if nothing outside stands
/// between the two, and if it waits for no other actor and for no data from before the plan that
/// the bundle does not wait for anyway: so the bundle begins as soon as its first node could. One
/// that another actor waits for is its bundle's last.
BundledPlan bundle_nodes(const PlanGraph& plan, const std::vector<bool>& may_bundle);

}  // namespace weft
