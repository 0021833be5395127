#include "framework/standing_ops.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include "framework/kernel_code.hpp"
#include "framework/mailbox.hpp"

namespace weft {
namespace {

constexpr std::uint32_t kNone = PlanGraph::kNone;
constexpr std::size_t kLine = 64;

// A replay with standing ops begins when all others are made, not some at a time: worth it only if
// they are a good part of a plan that is not small.
constexpr std::size_t kSmall = 128, kShare = 4;

std::size_t scalars_end(const PlanForm::Step& step) {
  const std::size_t end = sizeof(Op) + step.arguments * sizeof(ArgSlot) + step.scalar_bytes;
  return (end + alignof(Standing) - 1) / alignof(Standing) * alignof(Standing);
}

// Of whom something outside the plan hears, or who hears from outside.
std::vector<bool> known_outside(const PlanForm& form) {
  std::vector<bool> known(form.steps.size());
  auto note = [&](std::uint32_t n) {
    if (n != kNone) known[n] = true;
  };
  for (std::uint32_t n = 0; n < known.size(); ++n) known[n] = form.steps[n].has_entries;
  for (const PlanGraph::Tensor& tensor : form.graph->tensors) {
    note(tensor.writer);
    for (const std::uint32_t reader : tensor.readers) note(reader);
  }
  for (const PlanGraph::Slot& slot : form.graph->slots) note(slot.ready);
  return known;
}

}  // namespace

std::shared_ptr<const StandingOps> StandingOps::of(const PlanForm& form) {
  const auto count = static_cast<std::uint32_t>(form.steps.size());
  const std::vector<bool> known = known_outside(form);
  std::vector<bool> stands(count);
  std::size_t standing = 0;
  for (std::uint32_t n = 0; n < count; ++n) {
    stands[n] = form.steps[n].stands && !known[n];
    standing += stands[n];
  }
  if (standing == 0 || (count > kSmall && standing < count / kShare)) return nullptr;

  auto made = std::make_shared<StandingOps>();
  StandingOps& shape = *made;
  std::vector<std::uint32_t> followers(count);
  std::map<Admission*, std::int64_t> counts;
  std::map<std::uint32_t, std::vector<Use>> uses;
  auto link = [&](std::uint32_t from, bool order_only) {
    if (stands[from]) shape.links.push_back({from, followers[from]++, order_only});
  };
  for (std::uint32_t n = 0; n < count; ++n) {
    const PlanForm::Step& step = form.steps[n];
    shape.first_link.push_back(static_cast<std::uint32_t>(shape.links.size()));
    for (std::uint32_t e = step.first_edge; e < step.first_edge + step.edges; ++e)
      link(form.edges[e].producer, form.edges[e].order_only);
    if (!stands[n]) {
      shape.made.push_back(n);
      continue;
    }
    for (std::uint16_t i = 0; i < step.arguments; ++i)
      uses[form.arguments[step.first_argument + i].slot].push_back({n, i});
    for (std::uint32_t e = step.first_edge; e < step.first_edge + step.edges; ++e)
      if (const PlanGraph::Edge& edge = form.edges[e]; !stands[edge.producer])
        shape.followers.push_back({edge.producer, n, edge.order_only});
    if (step.edges == 0) shape.roots.push_back(n);
    ++counts[step.owner->admission()];
  }
  shape.first_link.push_back(static_cast<std::uint32_t>(shape.links.size()));
  for (const std::uint32_t sink : form.sinks) link(sink, false);
  shape.first_link.push_back(static_cast<std::uint32_t>(shape.links.size()));

  for (std::uint32_t n = 0; n < count; ++n) {
    if (!stands[n]) continue;
    shape.nodes.push_back({n, followers[n], shape.bytes});
    const std::size_t end =
        scalars_end(form.steps[n]) + sizeof(Standing) + followers[n] * sizeof(std::uintptr_t);
    shape.bytes += (end + kLine - 1) / kLine * kLine;
  }
  for (const auto& [slot, of_slot] : uses) {
    shape.slots.push_back(slot);
    shape.first_use.push_back(static_cast<std::uint32_t>(shape.uses.size()));
    shape.uses.insert(shape.uses.end(), of_slot.begin(), of_slot.end());
  }
  shape.first_use.push_back(static_cast<std::uint32_t>(shape.uses.size()));
  std::stable_sort(shape.roots.begin(), shape.roots.end(), [&](std::uint32_t a, std::uint32_t b) {
    return form.steps[a].owner < form.steps[b].owner;
  });
  shape.counts.assign(counts.begin(), counts.end());
  return made;
}

void StandingRun::FreeBlocks::operator()(char* blocks) const {
  std::free(blocks);
}

StandingRun::StandingRun(Fabric& fabric, const PlanForm& form)
    : ops(form.steps.size()),
      fabric_(fabric),
      shape_(form.standing),
      blocks_(static_cast<char*>(std::aligned_alloc(kLine, shape_->bytes))),
      kept_(shape_->slots.size()) {
  if (!blocks_) throw std::bad_alloc();
  fabric_.references.fetch_add(1, std::memory_order_relaxed);
  for (const StandingOps::Node& node : shape_->nodes) {
    const PlanForm::Step& step = form.steps[node.number];
    Op* const op = new (blocks_.get() + node.offset) Op;
    ops[node.number] = op;
    op->size_class = Op::kStanding;
    op->alive = 0;
    op->references = 1;  // never given up
    op->code = step.code;
    op->owner = step.owner;
    op->lane = step.lane;
    op->device = step.device;
    op->domain = step.domain;
    op->priority = step.priority;
    op->arg_count = step.arguments;
    for (std::size_t i = 0; i < step.arguments; ++i)
      op->args()[i] = ArgSlot(nullptr, form.arguments[step.first_argument + i].access);
    if (step.pattern) copy_scalars(*step.pattern, *op, step.scalar_bytes);
    op->standing = new (blocks_.get() + node.offset + scalars_end(step)) Standing;
    op->standing->count = node.followers;
    op->standing->waits = std::max<std::uint32_t>(1, step.edges);
    op->pending.store(op->standing->waits, std::memory_order_relaxed);
  }
  for (const StandingOps::Node& node : shape_->nodes) follow(node.number, ops[node.number]);
  std::lock_guard lock(fabric_.standing_mutex);
  fabric_.standing_runs.push_back(this);
}

StandingRun::~StandingRun() {
  {
    std::lock_guard lock(fabric_.standing_mutex);
    std::erase(fabric_.standing_runs, this);
  }
  for (const StandingOps::Node& node : shape_->nodes) {
    Op* const op = ops[node.number];
    if (op->code->destroy_scalars) op->code->destroy_scalars(*op);
  }
  if (end_) release(end_);
  release(&fabric_);  // it has kept the kernels
}

void StandingRun::follow(std::uint32_t n, Op* op) {
  const auto bits = reinterpret_cast<std::uintptr_t>(op);
  for (std::uint32_t i = shape_->first_link[n]; i < shape_->first_link[n + 1]; ++i) {
    const StandingOps::Link& link = shape_->links[i];
    std::atomic_ref(ops[link.from]->standing->followers()[link.place])
        .store(bits | (link.order_only ? Op::kOrderOnly : 0), std::memory_order_relaxed);
  }
}

void StandingRun::connect() {
  for (const StandingOps::Follower& each : shape_->followers)
    plant_follower(ops[each.producer], Stage::Done, ops[each.node], each.order_only);
}

void StandingRun::prepare(const PlanForm& form, const PlanGraph& plan, std::uint32_t version) {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    Replica* const now = plan.slots[shape_->slots[i]].kept;
    if (kept_[i] == now) continue;
    kept_[i] = now;
    for (std::uint32_t u = shape_->first_use[i]; u < shape_->first_use[i + 1]; ++u) {
      const StandingOps::Use& use = shape_->uses[u];
      ArgSlot& argument = ops[use.node]->args()[use.argument];
      argument = ArgSlot(now, argument.access());
    }
  }
  if (version_ == version) return;
  for (const StandingOps::Node& node : shape_->nodes) {
    const PlanForm::Step& step = form.steps[node.number];
    if (!step.pattern || step.pattern->ticket <= version_) continue;
    Op* const op = ops[node.number];
    if (op->code->destroy_scalars) op->code->destroy_scalars(*op);
    copy_scalars(*step.pattern, *op, step.scalar_bytes);
  }
  version_ = version;
}

void StandingRun::start(Op* end) {
  {
    std::lock_guard lock(fabric_.standing_mutex);
    if (end_) release(end_);
    acquire(end);
    end_ = end;
    ++times_;
  }
  for (const auto& [admission, count] : shape_->counts) admission->take_in(count);
  for (std::size_t i = 0; i < shape_->roots.size();) {
    Op* const oldest = ops[shape_->roots[i]];
    Op* newest = oldest;
    for (++i; i < shape_->roots.size() && ops[shape_->roots[i]]->owner == oldest->owner; ++i) {
      Op* const op = ops[shape_->roots[i]];
      op->next = newest;
      newest = op;
    }
    oldest->owner->push_chain(newest, oldest);
  }
}

}  // namespace weft
