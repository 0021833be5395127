#include "framework/plan_form.hpp"

#include "framework/kernel_code.hpp"
#include "framework/residency.hpp"
#include "framework/standing_ops.hpp"

namespace weft {
namespace {

// What a socket's lane runs by the kernel's own variant and nothing else.
bool may_stand(const Fabric& fabric, const PlanGraph::Node& node) {
  return node.owner && node.domain == Domain::Host && node.code->cpu && !node.code->is_copy &&
         !node.code->is_collective && !node.code->changes_scalars &&
         fabric.places[node.device]->kind == DeviceKind::Socket;
}

}  // namespace

PlanForm::PlanForm(const Fabric& fabric, const PlanGraph& from) : graph(&from) {
  for (std::uint32_t n = 0; n < from.nodes.size(); ++n) {
    const PlanGraph::Node& node = from.nodes[n];
    Step step{};
    step.code = node.code;
    step.owner = node.owner;
    step.pattern = node.pattern;
    step.scalar_bytes = node.scalar_bytes;
    step.lane = node.lane;
    step.device = node.device;
    step.domain = node.domain;
    step.priority = node.priority;
    step.first_argument = static_cast<std::uint32_t>(arguments.size());
    step.first_edge = static_cast<std::uint32_t>(edges.size());
    step.arguments = static_cast<std::uint16_t>(node.arguments.size());
    step.edges = static_cast<std::uint32_t>(node.edges.size());
    step.has_entries = !node.entries.empty();
    step.stands = may_stand(fabric, node);
    for (const PlanGraph::Edge& edge : node.edges)
      step.waits += waits_on_device(node.domain, from.nodes[edge.producer].domain, edge.until_done);
    for (const PlanGraph::Entry& entry : node.entries)
      step.writes_first |= entry.tensor != PlanGraph::kNone;
    arguments.insert(arguments.end(), node.arguments.begin(), node.arguments.end());
    edges.insert(edges.end(), node.edges.begin(), node.edges.end());
    if (node.is_sink) sinks.push_back(n);
    steps.push_back(step);
    all.push_back(n);
  }
  standing = StandingOps::of(*this);
}

PlanForm::~PlanForm() = default;

}  // namespace weft
