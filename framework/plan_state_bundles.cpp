// How a plan's short ops go to their device together.
#include <algorithm>
#include <new>
#include <utility>

#include "framework/kernel_code.hpp"
#include "framework/plan_recorder.hpp"
#include "framework/plan_state.hpp"
#include "framework/trace.hpp"

namespace weft {

// What the program sets once it mostly sets again, and it may have to come over a link then.
void PlanState::note_bound(std::uint32_t tensor) {
  if (is_set_[tensor]) return;
  is_set_[tensor] = true;
  drop_bundles();
}

void PlanState::change_one(std::uint32_t n, void (*change)(void* scalars, const void* given),
                           const void* given) {
  const PlanGraph::Node& node = graph_->nodes[n];
  auto* const bytes = static_cast<const char*>(node.pattern->scalars());
  const bool are_plain = !node.code->copy_scalars;
  std::vector<char> before;
  if (are_plain) before.assign(bytes, bytes + node.scalar_bytes);
  change(node.pattern->scalars(), given);
  if (!are_plain || !std::equal(before.begin(), before.end(), bytes)) make_stale_member(n);
}

void PlanState::make_stale_member(std::uint32_t n) {
  if (!bundled_ || bundled_places_[n].node == PlanGraph::kNone || unrest_[n].is_stale) return;
  unrest_[n].is_stale = true;
  stale_members_.push_back(n);
}

// Some engines have to make a bundle anew when one of its ops changes: that is worth it now and
// then, but not at every replay.
void PlanState::leave_restless_alone() {
  constexpr std::uint32_t kMostInARow = 4;
  bool is_any_left = false;
  for (const std::uint32_t n : renewed_) {
    if (!bundled_ || unrest_[n].in_a_row < kMostInARow) continue;
    const Op& pattern = *bundled_plan_->graph.nodes[bundled_places_[n].node].pattern;
    const Bundle::Site& site = bundle_of(const_cast<Op&>(pattern)).site();
    if (!site.is_dear_to_change.load(std::memory_order_relaxed)) continue;
    is_alone_[n] = true;
    is_any_left = true;
  }
  renewed_.clear();
  if (is_any_left) drop_bundles();
}

void PlanState::drop_bundles() {
  bundled_.reset();
  has_no_bundles_ = false;
  for (const std::uint32_t n : stale_members_) unrest_[n].is_stale = false;
  stale_members_.clear();
  renewed_.clear();
  if (!bundled_plan_) return;
  for (const PlanGraph::Node& node : bundled_plan_->graph.nodes) {
    if (node.code != &bundle_kernel()) continue;
    bundle_kernel().destroy_scalars(*node.pattern);
    release(node.pattern);
  }
  bundled_plan_.reset();
}

// Recorders and tracers see every op by itself.
void PlanState::begin_form() {
  ++replays_;
  leave_restless_alone();
  may_go_together_ = fabric_.bundles != Bundles::None && !fabric_.serial &&
                     !PlanRecorder::of(fabric_) &&
                     !(fabric_.tracer && fabric_.tracer->is_recording());
}

// With the locks; it is known where everything is.
void PlanState::choose_form() {
  form_ = &plain_;
  if (!may_go_together_ || has_no_bundles_) return;
  if (!bundled_) make_bundles();
  if (!bundled_) return;
  renew_bundles();
  form_ = bundled_.get();
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
  const TensorState& tensor = *graph_->tensors[slot.tensor].now;
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
  for (std::size_t s = 0; s < is_late.size(); ++s)
    is_late[s] = is_set_[graph_->slots[s].tensor] || may_be_late(graph_->slots[s]);
  auto plan = std::make_unique<BundledPlan>(bundle_nodes(*graph_, may, is_late));
  if (plan->bundles == 0) {
    has_no_bundles_ = true;
    return;
  }
  bundled_users_.assign(graph_->slots.size(), {});
  bundled_places_.assign(graph_->nodes.size(), {});
  unrest_.resize(graph_->nodes.size());
  for (std::size_t at = 0; at < plan->members.size(); ++at) {
    if (plan->members[at].size() < 2) continue;
    auto bundle = std::make_shared<Bundle>();
    for (std::size_t i = 0; i < plan->members[at].size(); ++i) {
      const std::uint32_t n = plan->members[at][i];
      bundle->add(make_member(graph_->nodes[n]), plan->orders[at][i]);
      bundled_places_[n] = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(i)};
      for (const PlanGraph::Argument& argument : graph_->nodes[n].arguments) {
        bundled_users_[argument.slot].push_back(n);
      }
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

// A replica may come back at the address of one that is gone: only here is it seen that one has
// become another.
void PlanState::keep_in_slot(std::uint32_t s, Replica* replica) {
  Replica*& kept = graph_->slots[s].kept;
  if (kept == replica) return;
  keep_for_plan(kept, replica);
  if (bundled_)
    for (const std::uint32_t n : bundled_users_[s]) make_stale_member(n);
}

// Puts ops as they are now into the bundles in the place of those whose scalars were set, or whose
// tensors are elsewhere: bound, or written to other bytes from outside. Replays under way keep the
// bundles that they were given.
void PlanState::renew_bundles() {
  if (stale_members_.empty()) return;
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, Op*>>> changed;  // by bundle
  for (const std::uint32_t n : stale_members_) {
    const MemberPlace& place = bundled_places_[n];
    changed[place.node].emplace_back(place.member, make_member(graph_->nodes[n]));
    Unrest& unrest = unrest_[n];
    unrest.in_a_row = unrest.replay + 1 == replays_ ? unrest.in_a_row + 1 : 1;
    unrest.replay = replays_;
    unrest.is_stale = false;
  }
  std::swap(renewed_, stale_members_);
  stale_members_.clear();
  for (const auto& [node, members] : changed) {
    void* const scalars = bundled_plan_->graph.nodes[node].pattern->scalars();
    auto& bundle = *static_cast<std::shared_ptr<Bundle>*>(scalars);
    bundle = bundle->with(members);
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
