#include "framework/eviction.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/admit.hpp"
#include "framework/call_builder.hpp"
#include "framework/residency.hpp"
#include "framework/tensor.hpp"
#include "framework/victims.hpp"

namespace weft {
namespace {

bool may_be_evicted(const Replica& replica) {
  return replica.plans == 0 && !replica.tensor->is_pinned;
}

bool is_of(const Eviction::Claim& claim, const TensorState& tensor) {
  return std::any_of(claim.arguments.begin(), claim.arguments.end(), [&](const Argument& argument) {
    return argument.tensor == &tensor && argument.access != Access::Reduce;
  });
}

// False: the last handle is gone and the bytes go by themselves.
bool take_handle(TensorState& tensor) {
  std::uint32_t count = tensor.handles.load(std::memory_order_relaxed);
  do {
    if (count == 0) return false;
  } while (!tensor.handles.compare_exchange_weak(count, count + 1, std::memory_order_relaxed));
  return true;
}

// What the tensor itself says. `now` is the position of the submission that room is made for.
void look_at(TensorState& tensor, std::uint64_t now, EvictionCandidate& candidate) {
  std::lock_guard lock(tensor.lock);
  candidate.last_use = tensor.last_use;
  candidate.is_clean = tensor.replicas.size() > 1;
  candidate.is_busy = tensor.writer && !tensor.writer->is_settled();
  for (const Op* reader : tensor.readers)
    candidate.is_busy = candidate.is_busy || !reader->is_settled();
  // Its sum will be taken before long.
  if (tensor.is_partial && candidate.next_use == NextUses::kNever) candidate.next_use = now + 1;
}

bool is_elsewhere(const TensorState& tensor, const Replica& replica) {
  return std::any_of(tensor.replicas.begin(), tensor.replicas.end(), [&](const Replica* other) {
    return other != &replica &&
           !(other->ready && other->ready->is_settled() && other->ready->has_failed());
  });
}

}  // namespace

// Replicas of one memory that may go, and handles that keep their tensors meanwhile.
struct Eviction::Candidates {
  std::uint32_t memory = 0;
  std::vector<EvictionCandidate> each;
  std::vector<TensorHandle> handles;
};

bool Eviction::may_help(MemoryPool& pool) {
  if (pool.leaving() > 0) return true;
  bool may = false;
  pool.residents().for_each([&](const Replica& replica) { may = may || may_be_evicted(replica); });
  return may;
}

bool Eviction::make_room(MemoryPool& pool, std::size_t bytes, const Claim& claim) {
  if (pool.room() + pool.leaving() >= bytes) return true;
  if (evict(pool, bytes, claim) > 0 || pool.leaving() > 0) return true;
  // There may be no room to write back to.
  bool is_made = false;
  for (const auto& place : fabric_.places) {
    MemoryPool& other = *fabric_.memories[place->memory];
    if (place->kind != DeviceKind::Socket || &other == &pool) continue;
    other.set_watch(&watch_);
    is_made = other.leaving() > 0 || evict(other, other.room() + bytes, claim) > 0 || is_made;
  }
  return is_made && (evict(pool, bytes, claim) > 0 || is_anything_leaving());
}

bool Eviction::is_anything_leaving() const {
  return std::any_of(fabric_.memories.begin(), fabric_.memories.end(),
                     [](const auto& pool) { return pool->leaving() > 0; });
}

std::size_t Eviction::evict(MemoryPool& pool, std::size_t bytes, const Claim& claim) {
  const std::size_t there = pool.room() + pool.leaving();
  if (bytes <= there) return 0;
  Candidates candidates = candidates_in(pool, claim);
  std::size_t evicted = 0;
  // One that cannot be evicted after all makes another choice necessary.
  while (bytes > there + evicted && !candidates.each.empty())
    evicted += evict_some(candidates, bytes - there - evicted, claim.position);
  return evicted;
}

Eviction::Candidates Eviction::candidates_in(MemoryPool& pool, const Claim& claim) {
  Candidates found;
  {
    std::lock_guard lock(mutex_);
    pool.residents().for_each([&](Replica& replica) {
      TensorState& tensor = *replica.tensor;
      if (!may_be_evicted(replica) || replica.bytes == 0 || is_of(claim, tensor)) return;
      found.memory = replica.memory;
      if (!take_handle(tensor)) return;
      found.handles.emplace_back(&tensor);
      found.each.push_back({.bytes = MemoryPool::round_up(replica.bytes)});
    });
    for (std::size_t i = 0; i < found.each.size(); ++i) {
      const NextUses::Next next = uses_.next(found.handles[i].state(), found.memory);
      found.each[i].next_use = next.position;
      found.each[i].is_dead = next.is_dead;
    }
  }
  for (std::size_t i = 0; i < found.each.size(); ++i)
    look_at(*found.handles[i].state(), claim.position, found.each[i]);
  return found;
}

// Takes out what was tried; returns the bytes that will be given back.
std::size_t Eviction::evict_some(Candidates& candidates, std::size_t bytes, std::uint64_t now) {
  std::size_t evicted = 0;
  std::vector<bool> is_gone(candidates.each.size());
  for (const std::size_t i : choose_victims(candidates.each, bytes, now)) {
    is_gone[i] = true;
    TensorState& tensor = *candidates.handles[i].state();
    const Argument argument{&tensor, Access::In, nullptr};
    TensorLocks locks(fabric_, {&argument, 1});  // what is written back is a submission
    if (evict_replica(tensor, candidates.memory, candidates.each[i].is_dead))
      evicted += candidates.each[i].bytes;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < candidates.each.size(); ++i) {
    if (is_gone[i]) continue;
    if (kept != i) {
      candidates.each[kept] = candidates.each[i];
      candidates.handles[kept] = std::move(candidates.handles[i]);
    }
    ++kept;
  }
  candidates.each.resize(kept);
  candidates.handles.resize(kept);
  return evicted;
}

// The tensor's lock is held. False: its value would be lost.
bool Eviction::evict_replica(TensorState& tensor, std::uint32_t memory, bool is_dead) {
  discard_failed_copies(tensor);
  Replica* replica = find_replica(tensor, memory);
  if (!replica || !may_be_evicted(*replica)) return false;
  if (!is_dead && !is_elsewhere(tensor, *replica) && !write_back(tensor, *replica)) return false;
  drop_replica(tensor, replica);
  evictions_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// To the nearest memory of a socket that has room. False: there is none.
bool Eviction::write_back(TensorState& tensor, Replica& replica) {
  const Path* best = nullptr;
  double best_seconds = 0;
  for (const auto& place : fabric_.places) {
    if (place->kind != DeviceKind::Socket || place->memory == replica.memory) continue;
    const Path& path = fabric_.path(replica.memory, place->memory);
    if (path.segments.empty()) continue;
    if (fabric_.memories[place->memory]->room() < MemoryPool::round_up(tensor.bytes())) continue;
    const double seconds = copy_seconds(path, tensor.bytes());
    if (best && seconds >= best_seconds) continue;
    best = &path;
    best_seconds = seconds;
  }
  if (!best) return false;
  const Source source{&replica, best};
  Reservation reservation(fabric_, Budget::Gate);
  if (!reservation.add_way(tensor, source, true)) return false;
  reservation.commit();
  send_copies(fabric_, tensor, source);
  written_back_.fetch_add(tensor.bytes(), std::memory_order_relaxed);
  return true;
}

}  // namespace weft
