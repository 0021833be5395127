#include "framework/tensor_state.hpp"

#include <mutex>

#include "framework/fabric.hpp"
#include "framework/kernel_code.hpp"
#include "framework/memory_pool.hpp"

namespace weft {
namespace {

std::atomic<std::int64_t> tensor_count{0};

void destroy(TensorState* tensor) {
  if (tensor->partials) {
    for (Partial& partial : *tensor->partials) drop_handle(partial.tensor);
    delete tensor->partials;
  }
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

const KernelCode& drop_code() {
  static const auto* const code = [] {
    auto* made = new KernelCode;
    made->name = "drop";
    made->inline_run = destroy_after_use;
    return made;
  }();
  return *code;
}

}  // namespace

void free_replicas(Replica* first) {
  while (first) {
    Replica* next = first->next_stale;
    first->pool->free(first->data, first->bytes);
    first->pool->unreserve(first->bytes);
    if (first->ready) release(first->ready);
    delete first;
    first = next;
  }
}

TensorState* make_tensor_state(Fabric& fabric, const Shape& shape, std::uint32_t element_bytes,
                               std::uint32_t element_type) {
  auto* tensor = new TensorState;
  tensor->fabric = &fabric;
  fabric.references.fetch_add(1, std::memory_order_relaxed);
  tensor->shape = shape;
  tensor->element_bytes = element_bytes;
  tensor->element_type = element_type;
  tensor_count.fetch_add(1, std::memory_order_relaxed);
  return tensor;
}

std::int64_t live_tensors() {
  return tensor_count.load(std::memory_order_acquire);
}

void drop_handle(TensorState* tensor) {
  if (tensor->handles.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // No handle is left, so no submission can touch the tensor any more: the lock is not needed.
  SmallVector<Op*, 8> users;
  auto use = [&](Op* op) {
    if (op && !op->is_settled()) users.push_back(op);
  };
  use(tensor->writer);
  for (Op* reader : tensor->readers) use(reader);
  for (Replica* replica : tensor->replicas) use(replica->ready);
  if (users.empty()) {
    destroy(tensor);
    return;
  }
  Op* drop = make_op(&drop_code(), users.size(), 0, 0, sizeof(TensorState*));
  *static_cast<TensorState**>(drop->scalars()) = tensor;
  std::uint32_t waiting = 0;
  drop->pending.store(users.size() + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < users.size(); ++i)
    if (add_edge(users[i]->done_list, drop->edges() + i, drop, true)) ++waiting;
  for (std::uint32_t i = waiting; i < users.size(); ++i)
    drop->pending.fetch_sub(1, std::memory_order_acq_rel);
  satisfy(drop, send_to_owner());
}

}  // namespace weft
