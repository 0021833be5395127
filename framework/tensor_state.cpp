#include "framework/tensor_state.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "framework/fabric.hpp"
#include "framework/kernel_code.hpp"
#include "framework/memory_pool.hpp"
#include "framework/plan_recorder.hpp"

namespace weft {
namespace {

std::atomic<std::int64_t> tensor_count{0};

void destroy(TensorState* tensor) {
  forget_partials(*tensor);
  delete tensor->partials;
  for (Replica* replica : tensor->replicas) {
    replica->next_stale = nullptr;
    free_replicas(replica);
  }
  if (tensor->writer) release(tensor->writer);
  for (Op* reader : tensor->readers) release(reader);
  Fabric* fabric = tensor->fabric;
  delete tensor;
  release(fabric);
  tensor_count.fetch_sub(1, std::memory_order_release);
}

void destroy_after_use(Op& op) {
  destroy(*static_cast<TensorState**>(op.scalars()));
}

void free_after_use(Op& op) {
  free_replicas(*static_cast<Replica**>(op.scalars()));
}

// Codes of inline ops live as long as the process: ops may settle while it ends.
const KernelCode& make_lazy_code(const char* name, void (*inline_run)(Op&)) {
  auto* made = new KernelCode;
  made->name = name;
  made->inline_run = inline_run;
  made->is_lazy = true;
  return *made;
}

// Runs `code` on `what` once all of `users` have settled; at least one has not yet.
void run_behind(std::span<Op* const> users, const KernelCode& code, void* what) {
  Op* op = make_op(&code, 0, 0, sizeof(void*));
  *static_cast<void**>(op->scalars()) = what;
  publish(op);
  wait_for_all(op, users);
}

using Users = SmallVector<Op*, 8>;

void add_unsettled(Users& users, Op* op) {
  if (op && !op->is_settled()) users.push_back(op);
}

// No longer among the tensor's: eviction must not look at it any more. What will be freed begins to
// leave before: whoever looks for room must see its bytes in one place or the other.
void take_out(Replica* replica) {
  if (replica->is_resident) replica->pool->residents().remove(*replica);
}

// It will be freed without anybody's help.
void begin_leaving(Replica* replica) {
  replica->is_leaving = true;
  replica->pool->begin_leaving(replica->bytes);
}

// Frees a replica that is leaving and no longer among the tensor's. Chunks that did arrive may be
// under way from here: whatever uses a replica is a reader, or came before the last write.
void free_behind_users(TensorState& tensor, Replica* replica) {
  replica->next_stale = nullptr;
  Users users;
  add_unsettled(users, tensor.writer);
  for (Op* reader : tensor.readers) add_unsettled(users, reader);
  if (users.empty()) {
    free_replicas(replica);
    return;
  }
  static const KernelCode& code = make_lazy_code("discard", free_after_use);
  run_behind({users.begin(), users.size()}, code, replica);
}

}  // namespace

void add_replica(TensorState& tensor, Replica* replica) {
  tensor.replicas.push_back(replica);
  if (replica->pool != tensor.fabric->program_memory.get())
    replica->pool->residents().add(*replica);
}

void take_out_replicas(TensorState& tensor) {
  for (Replica* replica : tensor.replicas) take_out(replica);
  tensor.replicas.clear();
}

void drop_replica(TensorState& tensor, Replica* replica) {
  auto& all = tensor.replicas;
  *std::find(all.begin(), all.end(), replica) = all[all.size() - 1];
  all.pop_back();
  if (replica->plans == 0) begin_leaving(replica);
  take_out(replica);
  if (replica->ready) release(std::exchange(replica->ready, nullptr));
  if (replica->plans == 0) free_behind_users(tensor, replica);
}

void free_replicas(Replica* first) {
  while (first) {
    Replica* next = first->next_stale;
    take_out(first);
    first->pool->free(first->data, first->bytes);
    first->pool->unreserve(first->bytes, first->is_leaving);
    if (first->ready) release(first->ready);
    delete first;
    first = next;
  }
}

TensorState* make_tensor_state(Fabric& fabric, const Shape& shape, std::uint32_t element_bytes,
                               std::uint32_t element_type) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 62;
  if (shape.size() > kMostBytes / element_bytes)
    throw UsageError("a tensor of " + shape.to_string() + " elements of " +
                     std::to_string(element_bytes) + " bytes is too large: at most 2^62 bytes");
  auto* tensor = new TensorState;
  tensor->fabric = &fabric;
  fabric.references.fetch_add(1, std::memory_order_relaxed);
  tensor->shape = shape;
  tensor->element_bytes = element_bytes;
  tensor->element_type = element_type;
  tensor_count.fetch_add(1, std::memory_order_relaxed);
  if (PlanRecorder* const recorder = PlanRecorder::of(fabric)) recorder->note_made(tensor);
  return tensor;
}

std::int64_t live_tensors() {
  return tensor_count.load(std::memory_order_acquire);
}

void drop_handle(TensorState* tensor) {
  if (tensor->handles.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // No handle is left, so no submission can touch the tensor any more: the lock is not needed.
  Users users;
  add_unsettled(users, tensor->writer);
  for (Op* reader : tensor->readers) add_unsettled(users, reader);
  for (Replica* replica : tensor->replicas) add_unsettled(users, replica->ready);
  for (Replica* replica : tensor->replicas) {
    begin_leaving(replica);
    take_out(replica);
  }
  if (users.empty()) {
    destroy(tensor);
    return;
  }
  static const KernelCode& code = make_lazy_code("drop", destroy_after_use);
  run_behind({users.begin(), users.size()}, code, tensor);
}

void discard_failed_copies(TensorState& tensor) {
  if (tensor.writer && tensor.writer->is_settled() && tensor.writer->has_failed()) return;
  for (std::uint32_t i = tensor.replicas.size(); i-- > 0;) {
    Replica* replica = tensor.replicas[i];
    if (!replica->ready || !replica->ready->is_settled() || !replica->ready->has_failed()) continue;
    // The last one stays: the value was lost on its way, and whoever wants it fails with that.
    if (tensor.replicas.size() == 1) return;
    drop_replica(tensor, replica);
  }
}

void make_stale(Replica* replica, Op* op) {
  // Whatever made it valid is a reader, behind which `op` comes.
  if (replica->ready) release(std::exchange(replica->ready, nullptr));
  if (replica->plans > 0) return;
  begin_leaving(replica);
  replica->next_stale = op->stale;
  op->stale = replica;
}

void keep_for_plan(Replica*& kept, Replica* replica) {
  if (kept == replica) return;
  if (replica) ++replica->plans;
  Replica* const before = std::exchange(kept, replica);
  if (!before || --before->plans > 0) return;
  const auto& valid = before->tensor->replicas;
  if (std::find(valid.begin(), valid.end(), before) != valid.end()) return;
  begin_leaving(before);
  free_behind_users(*before->tensor, before);
}

Failure* failure_instead_of_value(const TensorState& tensor) {
  if (!tensor.replicas.empty() || !tensor.writer) return nullptr;
  return tensor.writer->failure.load(std::memory_order_acquire);
}

void forget_partials(TensorState& tensor) {
  if (!tensor.partials) return;
  for (const Partial& partial : *tensor.partials) drop_handle(partial.tensor);
  tensor.partials->clear();
}

}  // namespace weft
