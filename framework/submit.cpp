#include "framework/submit.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "framework/admit.hpp"
#include "framework/call_builder.hpp"
#include "framework/gate.hpp"
#include "framework/kernel_code.hpp"
#include "framework/mailbox.hpp"
#include "framework/memory_pool.hpp"
#include "framework/placer.hpp"
#include "framework/plan_recorder.hpp"
#include "framework/reduction.hpp"

namespace weft {
namespace {

// Of an argument that has none of its value, not even in failed replicas.
Failure* inherited_failure(const Call& call) {
  for (const Argument& argument : call.arguments)
    if (argument.access != Access::Out)
      if (Failure* cause = failure_instead_of_value(*argument.tensor)) return cause;
  return nullptr;
}

}  // namespace

void check_call(const Fabric& fabric, const Call& call, bool on_place) {
  const KernelCode& code = **call.code;
  const Place& place = *call.place;
  if (on_place && !call.owner) {
    const bool runs = place.domain == Domain::Cuda ? bool(code.cuda) : bool(code.cpu);
    if (!runs)
      throw UsageError("kernel " + code.name + " has no " +
                       (place.domain == Domain::Cuda ? "cuda" : "cpu") + " variant, which " +
                       place.name + " needs");
  }
  const auto arguments = call.arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].tensor)
      throw UsageError("kernel " + code.name + ": tensor argument " + std::to_string(i + 1) +
                       " is an empty handle");
    if (arguments[i].tensor->fabric != &fabric)
      throw UsageError("kernel " + code.name + ": tensor argument " + std::to_string(i + 1) + " (" +
                       arguments[i].tensor->shape.to_string() +
                       ") belongs to another runtime than " + place.name);
    for (std::size_t j = 0; j < i; ++j)
      if (arguments[i].tensor == arguments[j].tensor &&
          (arguments[i].access != Access::In || arguments[j].access != Access::In))
        throw UsageError("kernel " + code.name + ": tensor arguments " + std::to_string(j + 1) +
                         " and " + std::to_string(i + 1) +
                         " are the same tensor and one of them is written: use one inout argument");
  }
}

CallBytes bytes_in(const Fabric& fabric, const MemoryPool& pool, const Call& call,
                   std::uint32_t at) {
  CallBytes sum;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const std::uint32_t memory = call.memories.empty() ? at : call.memories[i];
    bool is_counted = fabric.memories[memory].get() != &pool;
    for (std::size_t j = 0; j < i && !is_counted; ++j)
      is_counted = call.arguments[j].tensor == call.arguments[i].tensor;
    if (is_counted) continue;
    sum.asked += call.arguments[i].tensor->bytes();
    sum.taken += MemoryPool::round_up(call.arguments[i].tensor->bytes());
  }
  return sum;
}

bool& thread_must_not_wait() {
  thread_local bool value = false;
  return value;
}

void release(Fabric* fabric) {
  if (fabric->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete fabric;
}

std::int64_t Fabric::in_flight() const {
  // All that settled first: an op may submit to a device already looked at and then settle. What is
  // submitted later only adds, so zero means that nothing was in flight in between.
  const std::int64_t already_settled = settled() + in_hand.settled();
  std::int64_t sum = in_hand.submitted();
  for (const auto& place : places) sum += place->admission->submitted();
  for (const auto& admission : link_admissions) sum += admission->submitted();
  return sum - already_settled;
}

std::int64_t Fabric::settled() const {
  std::int64_t sum = 0;
  for (const auto& place : places) sum += place->admission->settled();
  for (const auto& admission : link_admissions) sum += admission->settled();
  return sum;
}

void adopt(Fabric& fabric, const std::shared_ptr<const KernelCode>& code) {
  if (code->adopted_by.load(std::memory_order_acquire) == fabric.runtime_number) return;
  std::lock_guard lock(fabric.adopted_mutex);
  for (const auto& known : fabric.adopted)
    if (known == code) return;
  fabric.adopted.push_back(code);
  code->adopted_by.store(fabric.runtime_number, std::memory_order_release);
}

Op* fail_call(Fabric& fabric, const Call& call, Failure* failure) {
  TensorLocks locks(fabric, call.arguments);
  return CallBuilder(fabric, call, call.arguments).build(failure);
}

Op* try_submit(Fabric& fabric, const Call& call, Budget budget, Shortage& shortage) {
  Reservation reservation(fabric, budget);
  TensorLocks locks(fabric, call.arguments);
  if (Failure* cause = inherited_failure(call))
    return CallBuilder(fabric, call, call.arguments)
        .build(Failure::dependent(cause, (*call.code)->name));
  PartialSet partials(fabric, call);  // opens `reduce` arguments, sums up what others read
  CallBuilder builder(fabric, call, partials.arguments());
  if (!builder.prepare(reservation)) {
    shortage = {reservation.short_of(), reservation.missing()};
    return nullptr;
  }
  reservation.commit();
  Op* op = builder.build(nullptr);
  partials.commit();
  return op;
}

Op* submit(Fabric& fabric, const Call& call) {
  if (fabric.closed.load(std::memory_order_acquire))
    throw UsageError("kernel " + (*call.code)->name + ": its runtime has ended");
  if (call.policy) {
    Placer* const placer = fabric.placer.load(std::memory_order_acquire);
    return placer->submit(call, *call.policy);
  }
  check_call(fabric, call, true);
  adopt(fabric, *call.code);
  // What is recorded must be submitted here and now.
  Gate* const gate = PlanRecorder::of(fabric) ? nullptr : fabric.gate;
  if (gate && gate->is_shut()) return gate->queue(call);
  wait_for_room(call.owner ? *call.owner->admission() : *call.place->admission);
  for (;;) {
    Shortage shortage;
    if (Op* op = try_submit(fabric, call, gate ? Budget::Strict : Budget::Waiting, shortage))
      return op;
    if (!shortage.pool) {  // evicted as dead: what overwrites it waits at the gate
      if (gate) return gate->queue(call);
      throw UsageError("kernel " + (*call.code)->name + ": a tensor argument has no value yet");
    }
    MemoryPool& pool = *shortage.pool;
    const CallBytes all = bytes_in(fabric, pool, call, call.place->memory);
    if (all.taken <= pool.budget()) {
      if (gate && gate->may_help(pool)) return gate->queue(call);
      if (gate && thread_must_not_wait())
        if (Op* op = try_submit(fabric, call, Budget::Waiting, shortage)) return op;
      if (fabric.gate && fabric.gate->get_room(pool, shortage.missing)) continue;
      if (wait_for_memory(fabric, pool, shortage.missing)) continue;
    }
    return fail_call(fabric, call,
                     Failure::make(FailureKind::OutOfMemory, (*call.code)->name, call.place->name,
                                   out_of_memory(pool, all.asked ? all.asked : shortage.missing)));
  }
}

Failure* allocate_outputs(Op& op, const Place& place) {
  for (std::size_t i = 0; i < op.arg_count; ++i) {
    Replica* replica = op.args()[i].replica();
    if (op.args()[i].access() == Access::In || replica->data || replica->bytes == 0) continue;
    replica->data = replica->pool->allocate(replica->bytes);
    if (!replica->data)
      return Failure::make(FailureKind::OutOfMemory, op.code->name, place.name,
                           out_of_memory(*replica->pool, replica->bytes));
  }
  return nullptr;
}

std::size_t copied_bytes(const Op& op) {
  return op.code->is_copy ? static_cast<const CopyRange*>(const_cast<Op&>(op).scalars())->bytes : 0;
}

const std::shared_ptr<const KernelCode>& copy_code() {
  static const std::shared_ptr<const KernelCode> code = [] {
    auto made = std::make_shared<KernelCode>();
    made->name = "copy";
    made->is_copy = true;
    made->abandon = [](Op& op) {
      const auto& range = *static_cast<CopyRange*>(op.scalars());
      range.segment->load->queued_bytes.fetch_sub(static_cast<std::int64_t>(range.bytes),
                                                  std::memory_order_relaxed);
    };
    return made;
  }();
  return code;
}

}  // namespace weft
