#include "framework/plan_state.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "framework/admit.hpp"
#include "framework/gate.hpp"
#include "framework/kernel_code.hpp"
#include "framework/mailbox.hpp"
#include "framework/memory_pool.hpp"
#include "framework/plan.hpp"
#include "framework/reduction.hpp"
#include "framework/standing_ops.hpp"
#include "framework/tagged.hpp"
#include "framework/trace.hpp"

namespace weft {
namespace {

constexpr std::uint32_t kNone = PlanGraph::kNone;

// So many ops are made before the first of them may run: their edges are plain stores.
constexpr std::uint32_t kTogether = 128;

using KeptRun = std::shared_ptr<StandingRun>;

const KernelCode& join_code() {
  static const KernelCode& code = *[] {
    auto* made = new KernelCode;  // lives as long as the process, as other codes of inline ops
    made->name = "replay";
    made->destroy_scalars = [](Op& op) { static_cast<KeptRun*>(op.scalars())->~KeptRun(); };
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
    : fabric_(fabric),
      graph_(std::move(graph)),
      plain_(fabric, *graph_),
      is_alone_(graph_->nodes.size()),
      is_set_(graph_->tensors.size()) {
  fabric_.references.fetch_add(1, std::memory_order_relaxed);
  for (const PlanGraph::Node& node : graph_->nodes) {
    Admission* admission = node.owner ? node.owner->admission() : nullptr;
    if (admission &&
        std::find(admissions_.begin(), admissions_.end(), admission) == admissions_.end())
      admissions_.push_back(admission);
  }
  made_.resize(graph_->nodes.size());
  sources_.resize(graph_->slots.size());
  order_locks();
}

PlanState::~PlanState() {
  drop_bundles();
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

std::optional<std::uint32_t> PlanState::number_of(const TensorState* recorded) const {
  const auto found =
      std::find_if(graph_->tensors.begin(), graph_->tensors.end(),
                   [&](const PlanGraph::Tensor& tensor) { return tensor.recorded == recorded; });
  if (found == graph_->tensors.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - graph_->tensors.begin());
}

void PlanState::bind(TensorState* recorded, TensorState* now) {
  if (!now) throw UsageError("bind: the new tensor is an empty handle");
  const auto number = number_of(recorded);
  if (!number)
    throw UsageError("bind: the plan uses no such tensor; it has " +
                     std::to_string(graph_->tensors.size()) + " others");
  const Binding binding{*number, now};
  bind({&binding, 1});
}

void PlanState::bind(std::span<const Binding> bindings) {
  std::lock_guard guard(mutex_);
  for (const Binding& binding : bindings) check_binding(binding);
  if (makes_two_the_same(bindings))
    throw UsageError("bind: two tensors of the plan would be the same, and one is written");
  bind_now(bindings);
}

std::optional<Future> PlanState::replay_with(std::span<const Binding> bindings) {
  std::lock_guard guard(mutex_);
  for (const Binding& binding : bindings) check_binding(binding);
  if (makes_two_the_same(bindings)) return std::nullopt;
  bind_now(bindings);
  return replay_now();
}

void PlanState::check_binding(const Binding& binding) const {
  const TensorState& recorded = *graph_->tensors[binding.tensor].recorded;
  const TensorState& now = *binding.now;
  if (now.fabric != &fabric_) throw UsageError("bind: the new tensor is of another runtime");
  if (now.shape != recorded.shape || now.element_type != recorded.element_type)
    throw UsageError("bind: the plan was recorded for " + recorded.shape.to_string() +
                     " and the new tensor is " + now.shape.to_string() +
                     " or of another type; record again for another shape");
}

bool PlanState::makes_two_the_same(std::span<const Binding> bindings) const {
  auto bound = [&](std::uint32_t t) {
    for (const Binding& binding : bindings)
      if (binding.tensor == t) return binding.now;
    return graph_->tensors[t].now;
  };
  for (const Binding& binding : bindings) {
    const PlanGraph::Tensor& tensor = graph_->tensors[binding.tensor];
    if (tensor.now == binding.now) continue;
    for (std::uint32_t t = 0; t < graph_->tensors.size(); ++t) {
      const PlanGraph::Tensor& other = graph_->tensors[t];
      if (t != binding.tensor && (other.writer != kNone || tensor.writer != kNone) &&
          bound(t) == binding.now)
        return true;
    }
  }
  return false;
}

void PlanState::bind_now(std::span<const Binding> bindings) {
  bool is_any_new = false;
  for (const Binding& binding : bindings) {
    PlanGraph::Tensor& tensor = graph_->tensors[binding.tensor];
    if (tensor.now == binding.now) continue;
    is_any_new = true;
    binding.now->handles.fetch_add(1, std::memory_order_relaxed);
    {
      std::lock_guard lock(tensor.now->lock);
      for (const std::uint32_t s : tensor.slots) keep_in_slot(s, nullptr);
    }
    drop_handle(std::exchange(tensor.now, binding.now));
    note_bound(binding.tensor);
  }
  if (is_any_new) order_locks();
}

void PlanState::change_scalars(const KernelCode* kernel, std::optional<std::size_t> call,
                               void (*change)(void* scalars, const void* given),
                               const void* given) {
  std::lock_guard guard(mutex_);
  auto& calls = calls_[kernel];
  if (calls.empty())
    for (std::uint32_t n = 0; n < graph_->nodes.size(); ++n)
      if (graph_->nodes[n].code == kernel) calls.push_back(n);
  if (calls.empty()) throw UsageError("set_scalar: the plan does not call kernel " + kernel->name);
  if (call && *call >= calls.size())
    throw UsageError("set_scalar: call " + std::to_string(*call) + " of kernel " + kernel->name +
                     ", of which the plan has " + std::to_string(calls.size()));
  const std::span<const std::uint32_t> all(calls);
  for (const std::uint32_t n : call ? all.subspan(*call, 1) : all) {
    change_one(n, change, given);
    graph_->nodes[n].pattern->ticket = times_set_ + 1;
  }
  ++times_set_;
}

Future PlanState::replay() {
  std::lock_guard guard(mutex_);
  return replay_now();
}

Future PlanState::replay_now() {
  if (fabric_.closed.load(std::memory_order_acquire))
    throw UsageError("replay: the plan's runtime has ended");
  wait_for_gate();
  for (Admission* admission : admissions_) wait_for_room(*admission);
  begin_form();
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
    const std::size_t wanted = reservation->missing();
    reservation.reset();
    if (fabric_.gate && fabric_.gate->get_room(pool, wanted)) continue;
    if (wait_for_memory(fabric_, pool, wanted)) continue;
    Failure* failure =
        Failure::make(FailureKind::OutOfMemory, "replay", pool.name(), out_of_memory(pool, wanted));
    Reservation forced(fabric_,
                       Budget::Ignored);  // for replicas that nothing will ever be written to
    TensorLocks locks(fabric_, locked_);
    prepare(forced);
    forced.commit();
    return Future(build(failure));
  }
}

// What waits for memory or a device was submitted before.
void PlanState::wait_for_gate() {
  Gate* const gate = fabric_.gate;
  if (!gate || !gate->is_shut()) return;
  if (!thread_must_not_wait()) return gate->wait_until_open();
  for (const PlanGraph::Tensor& tensor : graph_->tensors)
    if (gate->is_queued(tensor.now))
      throw UsageError(
          "replay: ops that use its tensors wait for memory or a device, and an actor's thread "
          "must not wait for them; replay from another thread");
}

// Where every replica comes from that the ops use, memory set aside. Changes nothing.
bool PlanState::prepare(Reservation& reservation) {
  bool is_any_failed = false;
  for (std::size_t s = 0; s < graph_->slots.size(); ++s) {
    if (!prepare_slot(s, reservation)) return false;
    const PlanGraph::Slot& slot = graph_->slots[s];
    is_any_failed = is_any_failed || (slot.is_read_first &&
                                      failure_instead_of_value(*graph_->tensors[slot.tensor].now));
  }
  // Just those that read it fail with it.
  if (is_any_failed) may_go_together_ = false;
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
    keep_in_slot(static_cast<std::uint32_t>(s), replica);
  }
  choose_form();
  run_ = doomed ? nullptr : choose_run();
  if (run_) run_->prepare(*form_, *graph_, times_set_);
  ops_ = run_ ? run_->ops.data() : made_.data();
  waits_for_program_ = false;
  const std::vector<std::uint32_t>& made = run_ ? form_->standing->made : form_->all;
  PlanRecorder* const recorder = PlanRecorder::of(fabric_);
  const DependencySet nothing;
  std::uint32_t first = 0;  // of those that are held back; the ones before run already
  for (const std::uint32_t n : made) {
    const PlanForm::Step& step = form_->steps[n];
    if (step.has_entries || (step.edges == 0 && fabric_.last_serial)) {
      DependencySet outside;
      find_outside(form_->graph->nodes[n], outside);
      ops_[n] = make(n, outside, doomed);
      if (step.writes_first) make_others_stale(n);
      if (recorder) record(*recorder, n);
      follow_others(n, first, outside);
    } else {
      ops_[n] = make(n, nothing, doomed);
      if (recorder) record(*recorder, n);
      follow_others(n, first, nothing);
    }
    if (run_ || n + 1 - first < kTogether || n + 1 == made.size()) continue;
    for (; first <= n; ++first) satisfy(ops_[first], send_submitted());
  }
  if (run_) run_->connect();
  Op* all = join(doomed);
  for (std::size_t t = 0; t < graph_->tensors.size(); ++t) leave_tensor(t);
  if (fabric_.serial && !made.empty()) remember_serial(fabric_, ops_[made.back()]);
  if (run_) run_->start(all);
  for (const std::uint32_t n : made) {
    if (n >= first) satisfy(ops_[n], run_ ? send_to_owner() : send_submitted());
    release(ops_[n]);
  }
  stood_ = form_->steps.size() - made.size();
  run_.reset();
  satisfy(all, send_to_owner());
  return all;
}

// Two replays may be under way with ops that stand; of further ones all ops are made. Engines with
// a time of their own and tracers see every op when it is submitted.
std::shared_ptr<StandingRun> PlanState::choose_run() {
  constexpr std::size_t kMostRuns = 2;
  if (!form_->standing || fabric_.serial || PlanRecorder::of(fabric_) ||
      (fabric_.tracer && fabric_.tracer->wants_ops()))
    return nullptr;
  for (const auto& run : form_->runs)
    if (run->is_free()) return run;
  if (form_->runs.size() == kMostRuns) return nullptr;
  return form_->runs.emplace_back(std::make_shared<StandingRun>(fabric_, *form_));
}

// The op with its arguments, known to nobody; one reference is its runner's, one ours.
Op* PlanState::make(std::uint32_t n, const DependencySet& outside, Failure* doomed) {
  const PlanForm::Step& step = form_->steps[n];
  const std::size_t waits = step.waits + count_waits(outside, step.domain);
  Op* op = make_op(step.code, step.arguments, waits, step.scalar_bytes, 2);
  op->owner = step.owner;
  op->lane = step.lane;
  op->device = step.device;
  op->domain = step.domain;
  op->priority = step.priority;
  for (std::size_t i = 0; i < step.arguments; ++i) {
    const PlanGraph::Argument& argument = form_->arguments[step.first_argument + i];
    op->args()[i] = ArgSlot(graph_->slots[argument.slot].kept, argument.access);
  }
  if (step.pattern) copy_scalars(*step.pattern, *op, step.scalar_bytes);
  if (doomed) op->failure.store(Failure::dependent(doomed, step.code->name));
  if (step.owner) step.owner->admission()->take_in();
  if (step.code->is_copy) {
    const auto& range = *static_cast<const CopyRange*>(op->scalars());
    range.segment->load->queue(range.bytes);
  }
  return op;
}

// A plan within a plan: its ops are the other's too.
void PlanState::record(PlanRecorder& recorder, std::uint32_t n) const {
  const PlanGraph::Node& node = graph_->nodes[n];
  SmallVector<Op*, 4> after;
  for (const std::uint32_t producer : node.after) after.push_back(ops_[producer]);
  if (node.code->is_copy)
    recorder.add_copy(ops_[n], *graph_->tensors[graph_->slots[node.arguments[0].slot].tensor].now);
  else
    recorder.add_op(ops_[n], node.scalar_bytes, {after.begin(), after.size()});
}

void PlanState::find_outside(const PlanGraph::Node& node, DependencySet& outside) const {
  for (const PlanGraph::Entry& entry : node.entries)
    if (entry.slot != kNone)
      outside.add(producer_of(*graph_->slots[entry.slot].kept), false);
    else
      add_write_dependencies(*graph_->tensors[entry.tensor].now, outside);
  if (node.edges.empty()) outside.add(fabric_.last_serial, true, true);
}

// The op follows what comes before it. Of the plan's own, those from `first` on are known to nobody
// yet; the others may settle at any time, as all outside.
void PlanState::follow_others(std::uint32_t n, std::uint32_t first, const DependencySet& outside) {
  const PlanForm::Step& step = form_->steps[n];
  const std::span<const PlanGraph::Edge> edges{form_->edges.data() + step.first_edge, step.edges};
  Op* const op = ops_[n];
  op->pending.store(step.edges + static_cast<std::uint32_t>(outside.size()) + 1,
                    std::memory_order_relaxed);
  if (fabric_.tracer) {
    DependencySet all;
    for (const PlanGraph::Edge& edge : edges)
      all.add(ops_[edge.producer], edge.order_only, edge.until_done);
    for (const Dependency& each : outside.all())
      all.add(each.producer, each.order_only, each.until_done);
    fabric_.tracer->submitted(fabric_, *op, all);
  }
  publish(op);
  std::uint32_t waits = 0, closed = 0;
  for (const PlanGraph::Edge& edge : edges) {
    Op* producer = ops_[edge.producer];
    note_producer(*op, *producer);
    if (producer->is_standing()) continue;  // see below
    const bool on_device = waits_on_device(op->domain, producer->domain, edge.until_done);
    if (on_device) {
      acquire(producer);
      op->waits()[waits++] = tag(producer, edge.order_only);
    }
    const Stage stage = on_device ? Stage::Issued : Stage::Done;
    if (edge.producer >= first)
      plant_follower(producer, stage, op, edge.order_only);
    else
      closed += !follow_running(op, producer, stage, edge.order_only);
  }
  if (run_) run_->follow(n, op);
  closed += follow(op, outside, waits);
  waits_for_program_ = waits_for_program_ || op->waits_for_program;
  if (closed) op->pending.fetch_sub(closed, std::memory_order_acq_rel);
}

// An op that stands is behind a promise if one that was made before may be.
void PlanState::note_producer(Op& op, const Op& producer) {
  if (producer.is_standing())
    op.waits_for_program = op.waits_for_program || waits_for_program_;
  else
    note_wait(op, producer);
}

// The first op that writes some tensors frees their replicas that the plan does not keep.
void PlanState::make_others_stale(std::uint32_t n) {
  for (const PlanGraph::Entry& entry : form_->graph->nodes[n].entries) {
    if (entry.tensor == kNone) continue;
    TensorState& state = *graph_->tensors[entry.tensor].now;
    for (Replica* replica : state.replicas) make_stale(replica, ops_[n]);
    take_out_replicas(state);
  }
}

// The tensor as the plan leaves it: last written by one of its ops, valid where it was at the end
// of the recording.
void PlanState::leave_tensor(std::size_t t) {
  const PlanGraph::Tensor& tensor = form_->graph->tensors[t];
  TensorState& state = *graph_->tensors[t].now;
  if (tensor.writer != kNone) {
    acquire(ops_[tensor.writer]);
    for (Op* reader : state.readers) release(reader);
    state.readers.clear();
    if (state.writer) release(state.writer);
    state.writer = ops_[tensor.writer];
    for (const std::uint32_t s : tensor.slots) {
      const PlanGraph::Slot& slot = graph_->slots[s];
      if (!slot.is_valid) continue;
      add_replica(state, slot.kept);
      const std::uint32_t ready = form_->graph->slots[s].ready;
      if (ready == kNone) continue;
      acquire(ops_[ready]);
      slot.kept->ready = ops_[ready];
    }
  }
  for (const std::uint32_t reader : tensor.readers) {
    acquire(ops_[reader]);
    add_reader(state, ops_[reader]);
  }
}

// Done when all are; the caller gets a reference, and `satisfy` is its own. Keeps what stands as
// long as the replay is under way, whatever becomes of the plan.
Op* PlanState::join(Failure* doomed) {
  Op* all = make_op(&join_code(), 0, 0, sizeof(KeptRun), 2);
  new (all->scalars()) KeptRun(run_);
  if (doomed) all->failure.store(doomed);
  all->pending.store(static_cast<std::uint32_t>(form_->sinks.size()) + 1,
                     std::memory_order_relaxed);
  publish(all);
  if (run_) run_->follow(static_cast<std::uint32_t>(form_->steps.size()), all);
  std::uint32_t closed = 0;
  for (const std::uint32_t sink : form_->sinks) {
    note_producer(*all, *ops_[sink]);
    if (ops_[sink]->is_standing()) continue;
    closed += !follow_running(all, ops_[sink], Stage::Done, false);
  }
  if (closed) all->pending.fetch_sub(closed, std::memory_order_acq_rel);
  return all;
}

std::size_t PlanState::standing() {
  std::lock_guard guard(mutex_);
  return stood_;
}

Future Plan::replay() const {
  return state_ ? state_->replay() : Future();
}

void Plan::bind_states(TensorState* recorded, TensorState* now) const {
  if (!state_) throw UsageError("bind: the plan is an empty handle");
  state_->bind(recorded, now);
}

void Plan::change_scalars(const KernelCode* kernel, std::size_t call,
                          void (*change)(void* scalars, const void* given),
                          const void* given) const {
  if (!state_) throw UsageError("set_scalar: the plan is an empty handle");
  state_->change_scalars(kernel, call == kEveryCall ? std::nullopt : std::optional(call), change,
                         given);
}

std::size_t Plan::size() const {
  return state_ ? state_->graph().nodes.size() : 0;
}

std::string Plan::explain() const {
  if (!state_) return "an empty plan\n";
  std::string text = explain_plan(state_->graph(), state_->fabric());
  for (const std::string& bundle : state_->bundles()) text += "as one on " + bundle + "\n";
  if (const std::size_t standing = state_->standing())
    text += "standing from replay to replay: " + std::to_string(standing) + " ops\n";
  return text;
}

std::string Plan::dot() const {
  return state_ ? plan_as_dot(state_->graph(), state_->fabric()) : "digraph plan {}\n";
}

std::string Plan::json() const {
  return state_ ? plan_as_json(state_->graph(), state_->fabric()) : "{}\n";
}

}  // namespace weft
