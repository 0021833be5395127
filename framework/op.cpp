#include "framework/op.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "framework/followers.hpp"
#include "framework/kernel_code.hpp"
#include "framework/mailbox.hpp"
#include "framework/op_pool.hpp"
#include "framework/tagged.hpp"
#include "framework/tensor_state.hpp"

namespace weft {

namespace {

// Threads take numbers by so many, so that they share no cache line at each op.
std::uint32_t next_order() {
  constexpr std::uint32_t kAtOnce = 32;
  static std::atomic<std::uint32_t> shared{0};
  thread_local std::uint32_t next = 0, left = 0;
  if (left == 0) {
    next = shared.fetch_add(kAtOnce, std::memory_order_relaxed);
    left = kAtOnce;
  }
  --left;
  return next++;
}

}  // namespace

Op* make_op(const KernelCode* code, std::size_t args, std::size_t waits, std::size_t scalar_bytes,
            std::uint32_t references) {
  const std::size_t bytes =
      sizeof(Op) + args * sizeof(ArgSlot) + waits * sizeof(Op*) + scalar_bytes;
  std::uint8_t size_class = 0;
  Op* op = new (op_pool::allocate(bytes, size_class)) Op;
  op->size_class = size_class;
  op->code = code;
  op->arg_count = static_cast<std::uint16_t>(args);
  op->wait_count = static_cast<std::uint16_t>(waits);
  op->ticket = next_order();
  std::atomic_ref(op->references).store(references, std::memory_order_relaxed);
  return op;
}

void copy_scalars(Op& from, Op& to, std::size_t bytes) {
  if (to.code->copy_scalars)
    to.code->copy_scalars(from.scalars(), to.scalars());
  else
    std::memcpy(to.scalars(), from.scalars(), bytes);
}

void release(Op* op, std::uint32_t count) {
  std::atomic_ref references(op->references);
  if (references.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  if (Failure* failure = op->failure.load(std::memory_order_relaxed)) failure->release();
  std::atomic_ref(op->alive).store(0, std::memory_order_relaxed);
  op_pool::free(op, op->size_class);
}

// Nobody but a maker raises a count from 0, and only in a block that is not handed out twice: an op
// whose count was raised from more than that stays what it is.
bool try_acquire(Op* op) {
  std::atomic_ref references(op->references);
  std::uint32_t found = references.load(std::memory_order_relaxed);
  do {
    if (found == 0) return false;
  } while (!references.compare_exchange_weak(found, found + 1, std::memory_order_acq_rel,
                                             std::memory_order_relaxed));
  if (std::atomic_ref(op->alive).load(std::memory_order_acquire) == Op::kAlive) return true;
  release(op);
  return false;
}

Failure* inherited(Failure* cause, const Op& op) {
  if (!op.code->is_stand_in) return Failure::dependent(cause, op.code->name);
  cause->acquire();
  return cause;
}

namespace {

struct SendToOwner final : ReadySink {
  void ready(Op* op) override { op->owner->push(op); }
};

struct SendSubmitted final : ReadySink {
  void ready(Op* op) override { op->owner->push_submitted(op); }
};

void fail_from(Op* op, Failure* cause) {
  Failure* failure = inherited(cause, *op);
  Failure* expected = nullptr;
  if (!op->failure.compare_exchange_strong(expected, failure, std::memory_order_acq_rel))
    failure->release();  // another producer failed first: one root cause is enough
}

// Ops that became ready and need no actor: inline ones, and those that fail with a producer. Worked
// off in a loop by the outermost call of a thread, so that long chains do not recurse.
struct InlineQueue {
  Op* head = nullptr;
  Op** tail = &head;
  bool busy = false;

  void push(Op* op) {
    op->next = nullptr;
    *tail = op;
    tail = &op->next;
  }
};
thread_local InlineQueue inline_queue;

void finish(Op* op, ReadySink& sink);

Admission* admission_of(const Op& op) {
  return op.owner ? op.owner->admission() : nullptr;
}

void drain_inline(ReadySink& sink) {
  if (inline_queue.busy) return;
  inline_queue.busy = true;
  while (Op* op = inline_queue.head) {
    inline_queue.head = op->next;
    if (!inline_queue.head) inline_queue.tail = &inline_queue.head;
    if (op->owner == nullptr && op->code->inline_run) op->code->inline_run(*op);
    if (op->owner && op->code->abandon) op->code->abandon(*op);
    Admission* admission = admission_of(*op);
    finish(op, sink);
    if (admission) admission->let_out();
  }
  inline_queue.busy = false;
}

// An op that fails before it is launched may have producers that are issued but not done. It must
// not settle before them: those that follow it take it to stand for them. Nothing counts on its
// `pending` any more. False if they have all settled.
bool waits_for_rest(Op* op) {
  if (op->wait_count == 0) return false;
  op->pending.store(op->wait_count + 1u, std::memory_order_relaxed);
  std::uint32_t settled = 1;
  for (std::size_t i = 0; i < op->wait_count; ++i)
    settled += !add_follower(untagged(op->waits()[i]), Stage::Done, op, true);
  return op->pending.fetch_sub(settled, std::memory_order_acq_rel) != settled;
}

void give(Op* op, ReadySink& sink) {
  const bool failed = op->failure.load(std::memory_order_acquire) != nullptr;
  if (op->owner && !failed)
    sink.ready(op);
  else if (!failed || !waits_for_rest(op))
    inline_queue.push(op);
}

// Gives up one of its pending counts; true if that was the last, which takes no atomic write.
bool count_down(Op* op) {
  return op->pending.load(std::memory_order_acquire) == 1 ||
         op->pending.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

// `bits` is a follower as slots hold it; it may go as soon as it is ready.
void let_go(std::uintptr_t bits, Failure* failure, ReadySink& sink) {
  Op* follower = Op::follower(bits);
  if (failure && !(bits & Op::kOrderOnly)) fail_from(follower, failure);
  if (count_down(follower)) give(follower, sink);
}

// In the order in which they were added, so that followers start in submission order.
void close_followers(Op* op, Stage stage, Failure* failure, ReadySink& sink) {
  std::uintptr_t found[Op::kSlots];
  std::size_t count = 0;
  const std::size_t end = op->end_slot(stage);
  std::size_t i = op->first_slot(stage);
  for (; i < end; ++i) {
    const std::uintptr_t bits = op->slots[i].exchange(Op::kClosed, std::memory_order_acq_rel);
    if (bits == 0 || bits == Op::kClosed) break;  // nobody got past it
    __builtin_prefetch(Op::follower(bits), 1);
    found[count++] = bits;
  }
  FollowerChunk* chunk = i == end ? close_more(op, stage) : nullptr;
  for (std::size_t k = 0; k < count; ++k) let_go(found[k], failure, sink);
  while (chunk) {
    for (std::uint32_t k = 0; k < chunk->count; ++k)
      __builtin_prefetch(Op::follower(chunk->followers[k]), 1);
    for (std::uint32_t k = 0; k < chunk->count; ++k) let_go(chunk->followers[k], failure, sink);
    free_chunk(std::exchange(chunk, chunk->next));
  }
}

// The op is as it was before anybody else can know that it has settled: behind the last of its
// followers that is let go, the next replay may begin.
void finish_standing(Op* op, ReadySink& sink) {
  Standing& standing = *op->standing;
  const std::uint32_t count = standing.count;
  std::uintptr_t* const followers = standing.followers();
  Failure* failure = op->failure.load(std::memory_order_acquire);
  if (failure) op->failure.store(nullptr, std::memory_order_relaxed);
  op->pending.store(standing.waits, std::memory_order_relaxed);
  standing.times.store(standing.times.load(std::memory_order_relaxed) + 1,
                       std::memory_order_relaxed);
  for (std::uint32_t i = 1; i < count; ++i) __builtin_prefetch(Op::follower(followers[i]), 1);
  for (std::uint32_t i = 0; i < count; ++i) let_go(followers[i], failure, sink);
  if (failure) failure->release();
}

// Closes both lists. `op->failure` is final before this.
void finish(Op* op, ReadySink& sink) {
  if (op->is_standing()) return finish_standing(op, sink);
  for (std::size_t i = 0; i < op->wait_count; ++i)
    if (Op* producer = op->waits()[i]) release(untagged(producer));
  if (op->code->destroy_scalars) op->code->destroy_scalars(*op);
  if (op->stale) free_replicas(std::exchange(op->stale, nullptr));
  Failure* failure = op->failure.load(std::memory_order_acquire);
  if (op->domain != Domain::Host && !op->is_issued())
    close_followers(op, Stage::Issued, failure, sink);
  close_followers(op, Stage::Done, failure, sink);
  release(op);
}

}  // namespace

ReadySink& send_submitted() {
  static SendSubmitted sink;
  return sink;
}

ReadySink& send_to_owner() {
  static SendToOwner sink;
  return sink;
}

void satisfy(Op* op, ReadySink& sink) {
  if (!count_down(op)) return;
  give(op, sink);
  drain_inline(sink);
}

void wait_for_all(Op* op, std::span<Op* const> producers) {
  op->pending.store(static_cast<std::uint32_t>(producers.size()) + 1, std::memory_order_relaxed);
  std::uint32_t settled = 0;
  for (std::size_t i = 0; i < producers.size(); ++i)
    settled += !add_follower(producers[i], Stage::Done, op, true);
  if (settled) op->pending.fetch_sub(settled, std::memory_order_acq_rel);
  satisfy(op, send_to_owner());
}

void mark_issued(Op* op, ReadySink& sink) {
  if (op->domain == Domain::Host) {  // all its slots are for those that wait for its end
    op->is_launched.store(true, std::memory_order_release);
    return;
  }
  close_followers(op, Stage::Issued, nullptr, sink);
  drain_inline(sink);
}

void settle(Op* op, Failure* failure, ReadySink& sink) {
  if (failure) {
    Failure* expected = nullptr;
    if (!op->failure.compare_exchange_strong(expected, failure, std::memory_order_acq_rel))
      failure->release();
  }
  Admission* admission = admission_of(*op);
  finish(op, sink);
  drain_inline(sink);
  // Last: callbacks of this op may have submitted more, and a runtime that counts none in flight
  // may end.
  if (admission) admission->let_out();
}

}  // namespace weft
