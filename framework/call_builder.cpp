#include "framework/call_builder.hpp"

#include <utility>

#include "framework/kernel_code.hpp"
#include "framework/mailbox.hpp"
#include "framework/memory_pool.hpp"
#include "framework/plan_recorder.hpp"
#include "framework/trace.hpp"

namespace weft {
namespace {

constexpr std::uint32_t kLaneBlock = 8;            // neighbours that start on one lane together
constexpr std::uint32_t kWorthSpreading = 20'000;  // ns: such ops go round robin over the lanes

// `lane`, or the next that is not busy with a long op.
std::uint32_t free_lane(const Place& place, std::uint32_t lane) {
  const auto lanes = static_cast<std::uint32_t>(place.lanes.size());
  for (std::uint32_t i = 0; i < lanes; ++i) {
    const std::uint32_t candidate = (lane + i) % lanes;
    if (!place.lanes[candidate]->is_occupied()) return candidate;
  }
  return lane;
}

std::uint32_t choose_lane(Place& place, const KernelCode& code, const DependencySet& needs,
                          TensorState* written) {
  const auto lanes = static_cast<std::uint32_t>(place.lanes.size());
  if (lanes == 1) return 0;
  if (code.typical_ns.load(std::memory_order_relaxed) > kWorthSpreading)
    return place.next_lane.fetch_add(1, std::memory_order_relaxed) % lanes;
  if (written)
    if (const std::uint32_t home = written->home_lane.load(std::memory_order_relaxed); home < lanes)
      return free_lane(place, home);
  std::uint32_t lane = lanes;
  if (needs.size() > 0 && place.kind == DeviceKind::Socket) {
    Op* middle = needs.all()[needs.size() / 2].producer;
    if (middle->owner && middle->domain == Domain::Host && middle->device == place.index &&
        !middle->has_heir.exchange(true, std::memory_order_relaxed))
      lane = middle->lane;
    else
      lane = place.next_lane.fetch_add(1, std::memory_order_relaxed) % lanes;
  }
  if (lane >= lanes)
    lane = place.next_lane.fetch_add(1, std::memory_order_relaxed) / kLaneBlock % lanes;
  if (written) written->home_lane.store(lane, std::memory_order_relaxed);
  return free_lane(place, lane);
}

}  // namespace

Reservation::~Reservation() {
  for (const Part& part : parts_)
    if (budget_ == Budget::Gate)
      fabric_.memories[part.memory]->cancel(part.bytes);
    else
      fabric_.memories[part.memory]->unreserve(part.bytes);
}

bool Reservation::add(std::uint32_t memory, std::size_t bytes) {
  MemoryPool& pool = *fabric_.memories[memory];
  if (budget_ != Budget::Gate && !in_hand_) in_hand_.emplace(fabric_);
  if (budget_ == Budget::Ignored ||
      (budget_ == Budget::Waiting && thread_must_not_wait() && bytes <= pool.budget())) {
    pool.force_reserve(bytes);
  } else if (!pool.try_reserve(bytes)) {
    short_of_ = &pool;
    missing_ = MemoryPool::round_up(bytes);
    for (const Part& part : parts_)
      if (part.memory == memory) missing_ += MemoryPool::round_up(part.bytes);
    return false;
  }
  parts_.push_back({memory, bytes});
  return true;
}

bool Reservation::add_way(const TensorState& tensor, const Source& source, bool with_end) {
  const auto& segments = source.path->segments;
  for (std::size_t i = 0; i < segments.size(); ++i)
    if ((with_end || i + 1 < segments.size()) && !add(segments[i].to, tensor.bytes())) return false;
  return true;
}

bool CallBuilder::prepare(Reservation& reservation) {
  // First of all: a source chosen below must not be taken out again.
  for (const Argument& argument : arguments_) discard_failed_copies(*argument.tensor);
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const TensorState& tensor = *arguments_[i].tensor;
    const std::uint32_t memory = memory_of(i);
    sources_.push_back({});
    if (find_replica(tensor, memory)) continue;
    if (overwrites(arguments_[i].access)) {
      if (!reservation.add(memory, tensor.bytes())) return false;
      continue;
    }
    const Source source = choose_source(fabric_, tensor, memory);
    if (!source.replica && tensor.writer && fabric_.gate) return false;
    if (!source.replica)
      throw UsageError("kernel " + (*call_.code)->name + ": tensor argument " +
                       std::to_string(i + 1) + " (" + tensor.shape.to_string() +
                       ") has no value yet: write it first");
    if (!source.path)
      throw DeviceError("no way leads from " + fabric_.memories[source.replica->memory]->name() +
                        " to " + fabric_.memories[memory]->name());
    sources_[i] = source;
    // The same tensor may be an argument twice: its copy is made once.
    bool known = false;
    for (std::size_t j = 0; j < i; ++j)
      known = known || (arguments_[j].tensor == &tensor && memory_of(j) == memory);
    if (!known && !reservation.add_way(tensor, source, true)) return false;
  }
  return true;
}

Op* CallBuilder::build(Failure* doomed) {
  DependencySet needs;
  SmallVector<Replica*, 12> replicas;
  TensorState* written = nullptr;
  std::uint32_t references = 2;  // the runner's and the caller's
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    TensorState& tensor = *arguments_[i].tensor;
    const Access access = arguments_[i].access;
    Replica* replica = doomed ? find_replica(tensor, memory_of(i)) : replica_for(i);
    replicas.push_back(replica);
    if (!overwrites(access) && !doomed) needs.add(producer_of(*replica), false);
    if (access != Access::In) {
      add_write_dependencies(tensor, needs);
      if (!written) written = &tensor;
      if (doomed) forget_partials(tensor);
    }
    references += !doomed || access != Access::In;
  }
  for (Op* producer : call_.after) needs.add(producer, false);
  needs.add(fabric_.last_serial, true, true);

  Place& place = *call_.place;
  const Domain domain = doomed ? Domain::Host : call_.domain.value_or(place.domain);
  const KernelCode& code = **call_.code;
  Op* op =
      make_op(&code, arguments_.size(), count_waits(needs, domain), call_.scalar_bytes, references);
  op->device = static_cast<std::uint16_t>(place.index);
  op->domain = domain;
  op->priority = call_.priority;
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    op->args()[i] = ArgSlot(replicas[i], arguments_[i].access);
  if (call_.write_scalars) call_.write_scalars(op->scalars(), call_.context);
  if (!doomed) {
    if (call_.owner) {
      op->owner = call_.owner;
    } else {
      op->lane = choose_lane(place, code, needs, written);
      op->owner = place.lanes[op->lane];
    }
    op->owner->admission()->take_in();
  }
  op->failure.store(doomed, std::memory_order_relaxed);
  if (fabric_.tracer) fabric_.tracer->submitted(fabric_, *op, needs);
  if (PlanRecorder* recorder = PlanRecorder::of(fabric_))
    recorder->add_op(op, call_.scalar_bytes, call_.after);
  connect(op, needs);
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    TensorState& tensor = *arguments_[i].tensor;
    if (arguments_[i].access != Access::In)
      become_writer(tensor, op, replicas[i]);
    else if (!doomed)  // else it did not wait for the writer and stands for nothing
      add_reader(tensor, op);
  }
  remember_serial(fabric_, op);
  satisfy(op, send_submitted());
  return op;
}

Replica* CallBuilder::replica_for(std::size_t i) {
  TensorState& tensor = *arguments_[i].tensor;
  const std::uint32_t memory = memory_of(i);
  if (Replica* replica = find_replica(tensor, memory)) return replica;  // or an earlier argument's
  if (sources_[i].path) return send_copies(fabric_, tensor, sources_[i]);
  return make_replica(fabric_, tensor, memory);
}

}  // namespace weft
