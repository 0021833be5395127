#include "framework/followers.hpp"

#include <utility>

#include "framework/op_pool.hpp"
#include "framework/spin.hpp"

namespace weft {
namespace {

constexpr std::uintptr_t kLocked = 1;

std::atomic<std::uintptr_t>& list_of(Op* op, Stage stage) {
  return op->more[static_cast<std::size_t>(stage)];
}

FollowerChunk* make_chunk() {
  std::uint8_t size_class = 0;
  return static_cast<FollowerChunk*>(op_pool::allocate(sizeof(FollowerChunk), size_class));
}

}  // namespace

namespace detail {

bool lock_more(std::atomic<std::uintptr_t>& list, FollowerChunk*& newest) {
  Backoff backoff;
  for (;;) {
    std::uintptr_t found = list.load(std::memory_order_acquire);
    if (found == Op::kClosed) return false;
    if (!(found & kLocked) &&
        list.compare_exchange_weak(found, found | kLocked, std::memory_order_acq_rel,
                                   std::memory_order_relaxed)) {
      newest = reinterpret_cast<FollowerChunk*>(found);
      return true;
    }
    backoff.pause();
  }
}

void unlock_more(std::atomic<std::uintptr_t>& list, FollowerChunk* newest) {
  list.store(reinterpret_cast<std::uintptr_t>(newest), std::memory_order_release);
}

}  // namespace detail

void free_chunk(FollowerChunk* chunk) {
  op_pool::free(chunk, 0);
}

bool add_to_more(Op* producer, Stage stage, std::uintptr_t bits) {
  auto& list = list_of(producer, stage);
  FollowerChunk* fresh = nullptr;  // made while the lock is not held
  for (;;) {
    FollowerChunk* newest = nullptr;
    if (!detail::lock_more(list, newest)) {
      if (fresh) free_chunk(fresh);
      return false;
    }
    if (fresh && (!newest || newest->count == FollowerChunk::kRoom)) {
      fresh->next = newest;
      fresh->count = 0;
      newest = std::exchange(fresh, nullptr);
    }
    const bool fits = newest && newest->count < FollowerChunk::kRoom;
    if (fits) newest->followers[newest->count++] = bits;
    detail::unlock_more(list, newest);
    if (!fits) {
      fresh = make_chunk();
      continue;
    }
    if (fresh) free_chunk(fresh);
    return true;
  }
}

FollowerChunk* close_more(Op* op, Stage stage) {
  auto& list = list_of(op, stage);
  FollowerChunk* newest = nullptr;
  if (!detail::lock_more(list, newest)) return nullptr;
  list.store(Op::kClosed, std::memory_order_release);
  FollowerChunk* oldest_first = nullptr;
  while (newest) {
    FollowerChunk* next = newest->next;
    newest->next = oldest_first;
    oldest_first = newest;
    newest = next;
  }
  return oldest_first;
}

}  // namespace weft
