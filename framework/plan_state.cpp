#include "framework/plan_state.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "framework/admit.hpp"
#include "framework/kernel_code.hpp"
#include "framework/mailbox.hpp"
#include "framework/memory_pool.hpp"
#include "framework/plan.hpp"
#include "framework/reduction.hpp"
#include "framework/tagged.hpp"
#include "framework/trace.hpp"

namespace weft {
namespace {

constexpr std::uint32_t kNone = PlanGraph::kNone;

const KernelCode& join_code() {
  static const KernelCode& code = *[] {
    auto* made = new KernelCode;  // lives as long as the process, as other codes of inline ops
    made->name = "replay";
    return made;
  }();
  return code;
}

std::string name_of(const PlanGraph& graph, std::size_t tensor) {
  return "tensor " + std::to_string(tensor) + " of the plan (" +
         graph.tensors[tensor].now->shape.to_string() + ")";
}

}  // namespace

void drop_plan(PlanGraph& graph) {
  for (PlanGraph::Slot& slot : graph.slots) {
    if (!slot.kept) continue;
    std::lock_guard lock(slot.kept->tensor->lock);
    keep_for_plan(slot.kept, nullptr);
  }
  for (PlanGraph::Node& node : graph.nodes) {
    if (!node.pattern) continue;
    if (node.code->destroy_scalars) node.code->destroy_scalars(*node.pattern);
    release(node.pattern);
  }
  for (const PlanGraph::Tensor& tensor : graph.tensors) {
    drop_handle(tensor.recorded);
    drop_handle(tensor.now);
  }
}

PlanState::PlanState(Fabric& fabric, std::unique_ptr<PlanGraph> graph)
    : fabric_(fabric), graph_(std::move(graph)) {
  fabric_.references.fetch_add(1, std::memory_order_relaxed);
  for (const PlanGraph::Node& node : graph_->nodes) {
    Admission* admission = node.owner ? node.owner->admission() : nullptr;
    if (admission &&
        std::find(admissions_.begin(), admissions_.end(), admission) == admissions_.end())
      admissions_.push_back(admission);
  }
  ops_.resize(graph_->nodes.size());
  sources_.resize(graph_->slots.size());
  order_locks();
}

PlanState::~PlanState() {
  drop_plan(*graph_);
  release(&fabric_);
}

void PlanState::order_locks() {
  locked_.clear();
  for (const PlanGraph::Tensor& tensor : graph_->tensors)
    locked_.push_back({tensor.now, Access::In, nullptr});
  std::sort(locked_.begin(), locked_.end(),
            [](const Argument& a, const Argument& b) { return a.tensor < b.tensor; });
}

void PlanState::bind(TensorState* recorded, TensorState* now) {
  std::lock_guard guard(mutex_);
  if (!now) throw UsageError("bind: the new tensor is an empty handle");
  const auto found =
      std::find_if(graph_->tensors.begin(), graph_->tensors.end(),
                   [&](const PlanGraph::Tensor& tensor) { return tensor.recorded == recorded; });
  if (found == graph_->tensors.end())
    throw UsageError("bind: the plan uses no such tensor; it has " +
                     std::to_string(graph_->tensors.size()) + " others");
  if (found->now == now) return;
  if (now->fabric != &fabric_) throw UsageError("bind: the new tensor is of another runtime");
  if (now->shape != recorded->shape || now->element_type != recorded->element_type)
    throw UsageError("bind: the plan was recorded for " + recorded->shape.to_string() +
                     " and the new tensor is " + now->shape.to_string() +
                     " or of another type; record again for another shape");
  for (const PlanGraph::Tensor& other : graph_->tensors)
    if (other.now == now && (other.writer != kNone || found->writer != kNone))
      throw UsageError("bind: two tensors of the plan would be the same, and one is written");
  now->handles.fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard lock(found->now->lock);
    for (const std::uint32_t s : found->slots) keep_for_plan(graph_->slots[s].kept, nullptr);
  }
  drop_handle(std::exchange(found->now, now));
  order_locks();
}

void PlanState::change_scalars(const KernelCode* kernel,
                               void (*change)(void* scalars, const void* given),
                               const void* given) {
  std::lock_guard guard(mutex_);
  bool found = false;
  for (const PlanGraph::Node& node : graph_->nodes) {
    if (node.code != kernel) continue;
    change(node.pattern->scalars(), given);
    found = true;
  }
  if (!found) throw UsageError("set_scalar: the plan does not call kernel " + kernel->name);
}

Future PlanState::replay() {
  std::lock_guard guard(mutex_);
  if (fabric_.closed.load(std::memory_order_acquire))
    throw UsageError("replay: the plan's runtime has ended");
  for (Admission* admission : admissions_) wait_for_room(*admission);
  for (;;) {
    std::optional<Reservation> reservation(std::in_place, fabric_);
    {
      TensorLocks locks(fabric_, locked_);
      for (const PlanGraph::Tensor& tensor : graph_->tensors) {
        sum_up_partials(fabric_, *tensor.now);
        discard_failed_copies(*tensor.now);
      }
      if (prepare(*reservation)) {
        reservation->commit();
        return Future(build(nullptr));
      }
    }
    MemoryPool& pool = *reservation->short_of();
    const std::size_t wanted = reservation->wanted();
    reservation.reset();
    if (wait_for_memory(fabric_, pool, wanted)) continue;
    Failure* failure =
        Failure::make(FailureKind::OutOfMemory, "replay", pool.name(), out_of_memory(pool, wanted));
    Reservation forced(fabric_, true);  // for replicas that nothing will ever be written to
    TensorLocks locks(fabric_, locked_);
    prepare(forced);
    forced.commit();
    return Future(build(failure));
  }
}

// Where every replica comes from that the ops use, memory set aside. Changes nothing.
bool PlanState::prepare(Reservation& reservation) {
  for (std::size_t s = 0; s < graph_->slots.size(); ++s)
    if (!prepare_slot(s, reservation)) return false;
  return true;
}

bool PlanState::prepare_slot(std::size_t s, Reservation& reservation) {
  const PlanGraph::Slot& slot = graph_->slots[s];
  const TensorState& tensor = *graph_->tensors[slot.tensor].now;
  sources_[s] = {};
  if (find_replica(tensor, slot.memory)) return true;
  // What failed is no value, but what follows shall fail with it: any bytes will do.
  if (!slot.is_read_first || failure_instead_of_value(tensor))
    return slot.kept || reservation.add(slot.memory, tensor.bytes());
  const Source source = choose_source(fabric_, tensor, slot.memory);
  if (!source.replica)
    throw UsageError("replay: " + name_of(*graph_, slot.tensor) +
                     " has no value yet: write it first, or bind another");
  if (!source.path)
    throw DeviceError("replay: no way leads from " +
                      fabric_.memories[source.replica->memory]->name() + " to " +
                      fabric_.memories[slot.memory]->name());
  sources_[s] = source;
  return reservation.add_way(tensor, source, true);
}

Op* PlanState::build(Failure* doomed) {
  for (std::size_t s = 0; s < graph_->slots.size(); ++s) {
    PlanGraph::Slot& slot = graph_->slots[s];
    TensorState& tensor = *graph_->tensors[slot.tensor].now;
    Replica* replica = find_replica(tensor, slot.memory);
    if (!replica && sources_[s].path) replica = send_copies(fabric_, tensor, sources_[s]);
    if (!replica) replica = slot.kept ? slot.kept : make_replica(fabric_, tensor, slot.memory);
    keep_for_plan(slot.kept, replica);
  }
  PlanRecorder* const recorder = PlanRecorder::of(fabric_);
  for (std::uint32_t n = 0; n < ops_.size(); ++n) {
    const PlanGraph::Node& node = graph_->nodes[n];
    DependencySet outside;
    find_outside(node, outside);
    std::size_t waits = count_waits(outside, node.domain);
    for (const PlanGraph::Edge& edge : node.edges)
      waits += waits_on_device(node.domain, graph_->nodes[edge.producer].domain, edge.until_done);
    Op* op = make_op(node.code, node.arguments.size(), waits, node.scalar_bytes);
    ops_[n] = op;
    op->owner = node.owner;
    op->lane = node.lane;
    op->device = node.device;
    op->domain = node.domain;
    for (std::size_t i = 0; i < node.arguments.size(); ++i)
      op->args()[i] = ArgSlot(graph_->slots[node.arguments[i].slot].kept, node.arguments[i].access);
    if (node.pattern) copy_scalars(*node.pattern, *op, node.scalar_bytes);
    if (doomed) op->failure.store(Failure::dependent(doomed, node.code->name));
    if (node.owner) node.owner->admission()->take_in();
    if (node.code->is_copy) {
      const auto& range = *static_cast<const CopyRange*>(op->scalars());
      range.segment->load->queued_bytes.fetch_add(static_cast<std::int64_t>(range.bytes),
                                                  std::memory_order_relaxed);
    }
    if (recorder) {  // a plan within a plan: its ops are the other's too
      SmallVector<Op*, 4> after;
      for (const std::uint32_t producer : node.after) after.push_back(ops_[producer]);
      if (node.code->is_copy)
        recorder->add_copy(op, *graph_->tensors[graph_->slots[node.arguments[0].slot].tensor].now);
      else
        recorder->add_op(op, node.scalar_bytes, {after.begin(), after.size()});
    }
    follow_others(n, op, outside);
  }
  Op* all = join(doomed);
  for (PlanGraph::Tensor& tensor : graph_->tensors) leave_tensor(tensor);
  if (!ops_.empty()) remember_serial(fabric_, ops_.back());
  // From here on ops may run and go. Those that wait for nothing else in the plan were held back.
  for (std::uint32_t n = 0; n < ops_.size(); ++n)
    if (graph_->nodes[n].edges.empty()) satisfy(ops_[n], send_submitted());
  satisfy(all, send_to_owner());
  return all;
}

void PlanState::find_outside(const PlanGraph::Node& node, DependencySet& outside) const {
  for (const PlanGraph::Entry& entry : node.entries)
    if (entry.slot != kNone)
      outside.add(producer_of(*graph_->slots[entry.slot].kept), false);
    else
      add_write_dependencies(*graph_->tensors[entry.tensor].now, outside);
  if (node.edges.empty()) outside.add(fabric_.last_serial, true, true);
}

// Nobody knows the plan's own ops yet; those outside may settle at any time.
void PlanState::follow_others(std::uint32_t n, Op* op, const DependencySet& outside) {
  const PlanGraph::Node& node = graph_->nodes[n];
  const auto inside = static_cast<std::uint32_t>(node.edges.size());
  op->pending.store(inside + static_cast<std::uint32_t>(outside.size()) + (inside == 0),
                    std::memory_order_relaxed);
  if (fabric_.tracer) {
    DependencySet all;
    for (const PlanGraph::Edge& edge : node.edges)
      all.add(ops_[edge.producer], edge.order_only, edge.until_done);
    for (const Dependency& each : outside.all())
      all.add(each.producer, each.order_only, each.until_done);
    fabric_.tracer->submitted(fabric_, *op, all);
  }
  std::uint32_t waits = 0;
  for (const PlanGraph::Edge& edge : node.edges) {
    Op* producer = ops_[edge.producer];
    const bool on_device = waits_on_device(op->domain, producer->domain, edge.until_done);
    if (on_device) {
      acquire(producer);
      op->waits()[waits++] = tag(producer, edge.order_only);
    }
    plant_follower(producer, on_device ? Stage::Issued : Stage::Done, op, edge.order_only);
  }
  publish(op);
  const std::uint32_t closed = follow(op, outside, waits);
  if (closed) op->pending.fetch_sub(closed, std::memory_order_acq_rel);
}

// The tensor as the plan leaves it: last written by one of its ops, valid where it was at the end
// of the recording. `now`'s replicas that the plan does not keep are freed by the first op to
// write.
void PlanState::leave_tensor(PlanGraph::Tensor& tensor) {
  TensorState& state = *tensor.now;
  if (tensor.writer != kNone) {
    Op* writer = ops_[tensor.writer];
    acquire(writer);
    SmallVector<Replica*, 4> before;
    for (Replica* replica : state.replicas) before.push_back(replica);
    state.replicas.clear();
    for (Replica* replica : before) make_stale(replica, ops_[tensor.first_writer]);
    for (Op* reader : state.readers) release(reader);
    state.readers.clear();
    if (state.writer) release(state.writer);
    state.writer = writer;
    for (const std::uint32_t s : tensor.slots) {
      const PlanGraph::Slot& slot = graph_->slots[s];
      if (!slot.is_valid) continue;
      state.replicas.push_back(slot.kept);
      if (slot.ready == kNone) continue;
      acquire(ops_[slot.ready]);
      slot.kept->ready = ops_[slot.ready];
    }
  }
  for (const std::uint32_t reader : tensor.readers) {
    acquire(ops_[reader]);
    add_reader(state, ops_[reader]);
  }
}

// Done when all are; the caller gets a reference, `satisfy` is its own.
Op* PlanState::join(Failure* doomed) {
  Op* all = make_op(&join_code(), 0, 0, 0, 2);
  std::uint32_t sinks = 0;
  if (doomed) all->failure.store(doomed);
  for (std::uint32_t n = 0; n < ops_.size(); ++n) sinks += graph_->nodes[n].is_sink;
  all->pending.store(sinks + 1, std::memory_order_relaxed);
  for (std::uint32_t n = 0; n < ops_.size(); ++n)
    if (graph_->nodes[n].is_sink) plant_follower(ops_[n], Stage::Done, all, false);
  publish(all);
  return all;
}

Future Plan::replay() const {
  return state_ ? state_->replay() : Future();
}

void Plan::bind_states(TensorState* recorded, TensorState* now) const {
  if (!state_) throw UsageError("bind: the plan is an empty handle");
  state_->bind(recorded, now);
}

void Plan::change_scalars(const KernelCode* kernel,
                          void (*change)(void* scalars, const void* given),
                          const void* given) const {
  if (!state_) throw UsageError("set_scalar: the plan is an empty handle");
  state_->change_scalars(kernel, change, given);
}

std::size_t Plan::size() const {
  return state_ ? state_->graph().nodes.size() : 0;
}

std::string Plan::explain() const {
  return state_ ? explain_plan(state_->graph(), state_->fabric()) : "an empty plan\n";
}

std::string Plan::dot() const {
  return state_ ? plan_as_dot(state_->graph(), state_->fabric()) : "digraph plan {}\n";
}

std::string Plan::json() const {
  return state_ ? plan_as_json(state_->graph(), state_->fabric()) : "{}\n";
}

}  // namespace weft
