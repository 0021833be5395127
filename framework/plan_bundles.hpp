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
  /// By node of `graph` and member: those of the same node that it comes behind, by their places
  /// among the members.
  std::vector<std::vector<std::vector<std::uint32_t>>> orders;
  std::size_t bundles = 0;  ///< nodes with more than one member
};

/// Puts nodes of one device together of which one needs another's data, of those with `may_bundle`.
/// Groups are merged if nothing outside stands between them, and if the younger waits for nothing
/// of another actor and for no late data that the older does not wait for: so a bundle begins as
/// soon as its first node could. A node that another actor waits for is its bundle's last.
/// `is_late`, by slot: what it holds when a replay begins may still be on its way from elsewhere.
BundledPlan bundle_nodes(const PlanGraph& plan, const std::vector<bool>& may_bundle,
                         const std::vector<bool>& is_late);

}  // namespace weft
