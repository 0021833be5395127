#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/plan_graph.hpp"

namespace weft {

class StandingOps;
class StandingRun;

/// The nodes of a plan as they are sent, each by itself or some as one: what a replay reads of
/// them, side by side, for the graph's own are lists of lists.
struct PlanForm {
  PlanForm(const Fabric& fabric, const PlanGraph& from);
  ~PlanForm();
  PlanForm(PlanForm&&) = delete;

  struct Step {
    const KernelCode* code;
    Mailbox* owner;
    Op* pattern;
    std::uint32_t scalar_bytes, lane;
    std::uint32_t first_argument, first_edge, edges;
    std::uint16_t arguments, waits, device;
    Domain domain;
    Priority priority;
    bool has_entries, writes_first;
    bool stands;  ///< may be an op that stands from replay to replay
  };

  const PlanGraph* graph;
  std::vector<Step> steps;
  std::vector<PlanGraph::Argument> arguments;
  std::vector<PlanGraph::Edge> edges;
  std::vector<std::uint32_t> sinks;
  std::vector<std::uint32_t> all;                  ///< 0, 1, 2 …
  std::shared_ptr<const StandingOps> standing;     ///< null: too few of them
  std::vector<std::shared_ptr<StandingRun>> runs;  ///< of the replays that may be under way at once
};

}  // namespace weft
