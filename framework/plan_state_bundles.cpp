// How a plan's short ops go to their device together.
#include <new>
#include <utility>

#include "framework/kernel_code.hpp"
#include "framework/plan_recorder.hpp"
#include "framework/plan_state.hpp"
#include "framework/trace.hpp"

namespace weft {

// What is set once is mostly set again: such a node stays by itself.
void PlanState::keep_alone(std::uint32_t n) {
  if (is_alone_[n]) return;
  is_alone_[n] = true;
  drop_bundles();
}

void PlanState::drop_bundles() {
  bundled_.reset();
  has_no_bundles_ = false;
  if (!bundled_plan_) return;
  for (const PlanGraph::Node& node : bundled_plan_->graph.nodes) {
    if (node.code != &bundle_kernel()) continue;
    bundle_kernel().destroy_scalars(*node.pattern);
    release(node.pattern);
  }
  bundled_plan_.reset();
}

// Recorders and tracers see every op by itself.
void PlanState::choose_form() {
  form_ = &plain_;
  if (fabric_.bundles == Bundles::None || fabric_.serial || has_no_bundles_ ||
      PlanRecorder::of(fabric_) || (fabric_.tracer && fabric_.tracer->is_recording()))
    return;
  if (!bundled_) make_bundles();
  if (bundled_) form_ = bundled_.get();
}

// An op that is never submitted.
Op* PlanState::make_member(const PlanGraph::Node& node) const {
  Op* op = make_op(node.code, node.arguments.size(), 0, node.scalar_bytes);
  op->device = node.device;
  op->domain = node.domain;
  for (std::size_t i = 0; i < node.arguments.size(); ++i)
    op->args()[i] = ArgSlot(graph_->slots[node.arguments[i].slot].kept, node.arguments[i].access);
  if (node.pattern) copy_scalars(*node.pattern, *op, node.scalar_bytes);
  return op;
}

bool PlanState::may_bundle(std::uint32_t n) const {
  // What takes long gains nothing, and would keep ops on other lanes from its place.
  constexpr double kMostFlops = 4e9, kMostBytes = 2e8;
  const PlanGraph::Node& node = graph_->nodes[n];
  if (is_alone_[n] || !node.owner || node.code->is_copy || node.code->is_collective ||
      node.code->is_never_bundled || node.code->changes_scalars)
    return false;
  const bool is_cuda = node.domain == Domain::Cuda;
  if (!is_cuda && (node.domain == Domain::Host || fabric_.bundles != Bundles::AllGpus))
    return false;
  if (is_cuda ? !node.code->cuda : !node.code->cpu) return false;
  for (const PlanGraph::Argument& argument : node.arguments)
    if (!graph_->slots[argument.slot].kept) return false;
  Bundle alone;
  alone.add(make_member(node));
  try {
    const Cost cost = alone.cost();
    return cost.flops <= kMostFlops && cost.bytes <= kMostBytes;
  } catch (...) {  // what a kernel says it costs may throw
    return false;
  }
}

// Whether what a replay finds there is made elsewhere, as far as it is known now: a link brings it.
bool PlanState::may_be_late(const PlanGraph::Slot& slot) const {
  TensorState& tensor = *graph_->tensors[slot.tensor].now;
  std::lock_guard lock(tensor.lock);
  const Replica* replica = find_replica(tensor, slot.memory);
  if (!replica) return true;
  const Op* const producer = producer_of(*replica);
  return producer && !producer->is_settled() &&
         fabric_.places[producer->device]->memory != slot.memory;
}

void PlanState::make_bundles() {
  std::vector<bool> may(graph_->nodes.size());
  for (std::uint32_t n = 0; n < may.size(); ++n) may[n] = may_bundle(n);
  std::vector<bool> is_late(graph_->slots.size());
  for (std::size_t s = 0; s < is_late.size(); ++s) is_late[s] = may_be_late(graph_->slots[s]);
  auto plan = std::make_unique<BundledPlan>(bundle_nodes(*graph_, may, is_late));
  if (plan->bundles == 0) {
    has_no_bundles_ = true;
    return;
  }
  bundled_kept_.assign(graph_->slots.size(), nullptr);
  for (std::size_t at = 0; at < plan->members.size(); ++at) {
    if (plan->members[at].size() < 2) continue;
    auto bundle = std::make_shared<Bundle>();
    for (std::size_t i = 0; i < plan->members[at].size(); ++i) {
      const std::uint32_t n = plan->members[at][i];
      bundle->add(make_member(graph_->nodes[n]), plan->orders[at][i]);
      for (const PlanGraph::Argument& argument : graph_->nodes[n].arguments)
        bundled_kept_[argument.slot] = graph_->slots[argument.slot].kept;
    }
    PlanGraph::Node& node = plan->graph.nodes[at];
    node.code = &bundle_kernel();
    node.scalar_bytes = sizeof(bundle);
    node.pattern = make_op(node.code, 0, 0, sizeof(bundle));
    new (node.pattern->scalars()) std::shared_ptr<Bundle>(std::move(bundle));
  }
  bundled_plan_ = std::move(plan);
  bundled_ = std::make_unique<PlanForm>(fabric_, bundled_plan_->graph);
}

// Somebody wrote one of the tensors to other bytes: the bundles do not fit any more. Of what moves
// so again and again they are not made again.
void PlanState::give_up_moved_bundles() {
  constexpr std::size_t kMostTimes = 8;
  for (std::size_t s = 0; s < bundled_kept_.size(); ++s) {
    if (!bundled_kept_[s] || bundled_kept_[s] == graph_->slots[s].kept) continue;
    form_ = &plain_;
    drop_bundles();
    if (++times_moved_ > kMostTimes) has_no_bundles_ = true;
    return;
  }
}

std::vector<std::string> PlanState::bundles() {
  std::lock_guard guard(mutex_);
  std::vector<std::string> lines;
  if (!bundled_plan_) return lines;
  for (const PlanGraph::Node& node : bundled_plan_->graph.nodes)
    if (node.code == &bundle_kernel())
      lines.push_back(fabric_.places[node.device]->name + ": " + bundle_of(*node.pattern).name());
  return lines;
}

}  // namespace weft
