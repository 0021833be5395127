#include <cstring>
#include <mutex>
#include <optional>
#include <string>

#include "framework/admit.hpp"
#include "framework/call_builder.hpp"
#include "framework/gate.hpp"
#include "framework/kernel.hpp"
#include "framework/memory_pool.hpp"
#include "framework/own_kernels.hpp"
#include "framework/plan_recorder.hpp"
#include "framework/reduction.hpp"
#include "framework/tensor.hpp"

namespace weft {
namespace {

const std::shared_ptr<KernelCode>& make_local_copy() {
  static const std::shared_ptr<KernelCode> code = [] {
    auto made = std::make_shared<KernelCode>();
    made->name = "copy_local";
    made->cpu = [](Cpu& cpu, Op& op) {
      const Replica& from = *op.args()[0].replica();
      const Replica& to = *op.args()[1].replica();
      cpu.parallel_ranges(from.bytes, 1 << 20, [&](std::size_t begin, std::size_t end) {
        std::memcpy(static_cast<char*>(to.data) + begin,
                    static_cast<const char*>(from.data) + begin, end - begin);
      });
    };
    return made;
  }();
  return code;
}

const std::shared_ptr<const KernelCode>& local_copy_code() {
  static const std::shared_ptr<const KernelCode> code = make_local_copy();
  return code;
}

}  // namespace

KernelCode& local_copy_kernel() {
  return *make_local_copy();
}

namespace {

Call transfer_call(Place& place, std::span<const Argument> arguments) {
  Call call;
  call.place = &place;
  call.code = &local_copy_code();
  call.arguments = arguments;
  return call;
}

}  // namespace

Op* fail_transfer(Fabric& fabric, TensorState* source, TensorState* target, Place& place,
                  Failure* failure) {
  const Argument arguments[] = {{source, Access::In, nullptr}, {target, Access::Out, nullptr}};
  return fail_call(fabric, transfer_call(place, arguments), failure);
}

Op* try_transfer(Fabric& fabric, TensorState* source, TensorState* target, std::uint32_t memory,
                 Place& place, Budget budget, Shortage& shortage) {
  const Argument arguments[] = {{source, Access::In, nullptr}, {target, Access::Out, nullptr}};
  const Call call = transfer_call(place, arguments);
  TensorLocks locks(fabric, call.arguments);
  if (Failure* cause = failure_instead_of_value(*source))
    return CallBuilder(fabric, call, call.arguments).build(Failure::dependent(cause, "copy"));
  PartialSet partials(fabric, call);
  Reservation reservation(fabric, budget);
  if (source->replicas.empty() && source->writer && fabric.gate) {
    shortage = {};  // evicted as dead: what overwrites it waits at the gate
    return nullptr;
  }
  if (source->replicas.empty())
    throw UsageError("to_host: the tensor (" + source->shape.to_string() +
                     ") has no value yet: write it first");
  discard_failed_copies(*source);
  if (find_replica(*source, memory)) {
    CallBuilder builder(fabric, call, call.arguments);
    if (builder.prepare(reservation)) {
      reservation.commit();
      return builder.build(nullptr);
    }
  } else {
    const Source from = choose_source(fabric, *source, memory);
    if (!from.path)
      throw DeviceError("no way leads from " + fabric.memories[from.replica->memory]->name() +
                        " to " + fabric.memories[memory]->name());
    Replica* into = find_replica(*target, memory);  // the program's own memory is there already
    if (reservation.add_way(*source, from, !into)) {
      reservation.commit();
      if (!into) into = make_replica(fabric, *target, memory);
      Op* last = nullptr;
      send_copies(fabric, *source, from, into, &last);
      acquire(last);
      become_writer(*target, last, into);
      return last;
    }
  }
  shortage = {reservation.short_of(), reservation.missing()};
  return nullptr;
}

Op* submit_transfer(Fabric& fabric, TensorState* source, TensorState* target, std::uint32_t memory,
                    Place& place) {
  if (fabric.closed.load(std::memory_order_acquire))
    throw UsageError("copy to " + fabric.memories[memory]->name() + ": its runtime has ended");
  if (PlanRecorder* recorder = PlanRecorder::of(fabric))
    recorder->refuse("a copy to or from the program's memory (to_host, copy_to, copy_from)");
  Gate* const gate = fabric.gate;
  if (gate && gate->is_shut()) return gate->queue_transfer(source, target, memory, place);
  wait_for_room(*place.admission);
  for (;;) {
    Shortage shortage;
    if (Op* op = try_transfer(fabric, source, target, memory, place, Budget::Waiting, shortage))
      return op;
    if (!shortage.pool) return gate->queue_transfer(source, target, memory, place);
    MemoryPool& pool = *shortage.pool;
    if (gate && gate->get_room(pool, shortage.missing)) continue;
    if (wait_for_memory(fabric, pool, shortage.missing)) continue;
    return fail_transfer(fabric, source, target, place,
                         Failure::make(FailureKind::OutOfMemory, "copy", place.name,
                                       out_of_memory(pool, shortage.missing)));
  }
}

namespace {

// The first socket, and its nearest memory, is where the program reads and writes.
Place& program_place(const Fabric& fabric) {
  for (const auto& place : fabric.places)
    if (place->kind == DeviceKind::Socket) return *place;
  return *fabric.places.front();
}

TensorHandle same_as(const TensorState& tensor) {
  return TensorHandle(
      make_tensor_state(*tensor.fabric, tensor.shape, tensor.element_bytes, tensor.element_type));
}

// Gives `tensor` the program's bytes at `data` as its replica in host memory.
void lend(TensorState& tensor, void* data) {
  Fabric& fabric = *tensor.fabric;
  Replica* replica = make_replica(fabric, tensor, program_place(fabric).memory);
  replica->pool = fabric.program_memory.get();
  replica->pool->force_reserve(replica->bytes);
  replica->data = data;
  add_replica(tensor, replica);
}

void check_bytes(const char* what, const TensorState& tensor, std::size_t bytes) {
  if (bytes != tensor.bytes())
    throw UsageError(std::string(what) + ": " + std::to_string(bytes / tensor.element_bytes) +
                     " elements in the program's memory for a tensor of " +
                     tensor.shape.to_string());
}

}  // namespace

TensorHandle copy_to_host(TensorState* source, Future& copied) {
  Fabric& fabric = *source->fabric;
  Place& host = program_place(fabric);
  TensorHandle target = same_as(*source);
  target.state()->is_pinned = true;
  copied = Future(submit_transfer(fabric, source, target.state(), host.memory, host));
  return target;
}

Future copy_to_program(TensorState* source, std::span<std::byte> into) {
  check_bytes("copy_to", *source, into.size());
  Fabric& fabric = *source->fabric;
  Place& host = program_place(fabric);
  const TensorHandle target = same_as(*source);
  lend(*target.state(), into.data());
  return Future(submit_transfer(fabric, source, target.state(), host.memory, host));
}

TensorHandle copy_from_program(Fabric& fabric, Place& place, std::span<const std::byte> from,
                               const Shape& shape, std::uint32_t element_bytes,
                               std::uint32_t element_type) {
  const TensorHandle source(make_tensor_state(fabric, shape, element_bytes, element_type));
  check_bytes("copy_from", *source.state(), from.size());
  lend(*source.state(), const_cast<std::byte*>(from.data()));
  TensorHandle target = same_as(*source.state());
  Future(submit_transfer(fabric, source.state(), target.state(), place.memory, place));
  return target;
}

Future last_write(TensorState* tensor) {
  if (Gate* gate = tensor->fabric->gate)
    if (Op* op = gate->queued_writer(tensor)) return Future(op);
  std::lock_guard lock(tensor->lock);
  if (!tensor->writer) return {};
  acquire(tensor->writer);
  return Future(tensor->writer);
}

}  // namespace weft
