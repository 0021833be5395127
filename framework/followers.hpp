#pragma once

#include <cstdint>

#include "framework/op.hpp"

namespace weft {

/// What stands behind an op that a plan keeps, in the op's own block: its followers, each once and
/// as an op's slots hold them.
struct alignas(8) Standing {
  std::uint32_t waits = 0;              ///< what `Op::pending` is before each replay
  std::uint32_t count = 0;              ///< of followers
  std::atomic<std::uint32_t> times{0};  ///< it has settled

  std::uintptr_t* followers() { return reinterpret_cast<std::uintptr_t*>(this + 1); }
};
static_assert(sizeof(Standing) == 16);

/// The followers of one stage beyond an op's slots, in chunks, the newest first. The list's word is
/// the newest chunk with a lock in its lowest bit, so one follower costs no block of its own, and
/// whoever closes it may free the chunks at once.
struct FollowerChunk {
  static constexpr std::uint32_t kRoom = 6;
  FollowerChunk* next;
  std::uint32_t count;
  std::uintptr_t followers[kRoom];  // oldest first
};
static_assert(sizeof(FollowerChunk) == 64);

/// Closes the list and returns its chunks, oldest first. The caller frees them with `free_chunk`.
FollowerChunk* close_more(Op* op, Stage stage);
void free_chunk(FollowerChunk* chunk);

/// Calls `visit(Op* follower)` for those known now, in no order. For diagnosis: the producer is
/// held, a follower may be about to go.
template <class Visit>
void visit_followers(Op* op, Visit&& visit);

namespace detail {
/// Takes the lock of a list. False, and nothing taken, if it is closed.
bool lock_more(std::atomic<std::uintptr_t>& list, FollowerChunk*& newest);
void unlock_more(std::atomic<std::uintptr_t>& list, FollowerChunk* newest);
}  // namespace detail

template <class Visit>
void visit_followers(Op* op, Visit&& visit) {
  if (op->is_standing()) {
    for (std::uint32_t i = 0; i < op->standing->count; ++i)
      visit(Op::follower(std::atomic_ref(op->standing->followers()[i]).load()));
    return;
  }
  for (const auto& slot : op->slots)
    if (const std::uintptr_t bits = slot.load(std::memory_order_acquire); bits > Op::kClosed)
      visit(Op::follower(bits));
  for (auto& list : op->more) {
    FollowerChunk* newest = nullptr;
    if (list.load(std::memory_order_acquire) == 0 || !detail::lock_more(list, newest)) continue;
    for (const FollowerChunk* chunk = newest; chunk; chunk = chunk->next)
      for (std::uint32_t i = 0; i < chunk->count; ++i) visit(Op::follower(chunk->followers[i]));
    detail::unlock_more(list, newest);
  }
}

}  // namespace weft
