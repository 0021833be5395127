#include "framework/eviction.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "framework/admit.hpp"
#include "framework/call_builder.hpp"
#include "framework/residency.hpp"
#include "framework/tensor.hpp"
#include "framework/victims.hpp"

namespace weft {
namespace {

// Of the budget: so much is free once room has been made, if it can be had for nothing.
constexpr std::size_t kSpareShare = 16;

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

// What the tensor itself says; its lock is held. `now` is the position of the submission that room
// is made for.
void look_at(TensorState& tensor, std::uint64_t now, EvictionCandidate& candidate) {
  candidate.last_use = tensor.last_use;
  candidate.is_clean = tensor.replicas.size() > 1;
  candidate.is_busy = tensor.writer && !tensor.writer->is_settled();
  for (const Op* reader : tensor.readers)
    candidate.is_busy = candidate.is_busy || !reader->is_settled();
  // Its sum will be taken before long.
  if (tensor.is_partial && candidate.next_use == NextUses::kNever) candidate.next_use = now + 1;
}

bool is_good(const Replica& replica) {
  return !(replica.ready && replica.ready->is_settled() && replica.ready->has_failed());
}

bool is_elsewhere(const TensorState& tensor, const Replica& replica) {
  return std::any_of(tensor.replicas.begin(), tensor.replicas.end(),
                     [&](const Replica* other) { return other != &replica && is_good(*other); });
}

// Whether only the disk has the value if the replica in `memory` goes.
bool is_last_above(const TensorState& tensor, std::uint32_t memory, std::uint32_t disk) {
  return std::none_of(tensor.replicas.begin(), tensor.replicas.end(), [&](const Replica* other) {
    return other->memory != memory && other->memory != disk && is_good(*other);
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
  found_dropped_ = false;
  return try_to_make_room(pool, bytes, claim) || found_dropped_;
}

bool Eviction::try_to_make_room(MemoryPool& pool, std::size_t bytes, const Claim& claim) {
  if (pool.room() + pool.leaving() >= bytes) {
    if (pool.room() < bytes) spill_ahead(pool, bytes, claim);
    return true;
  }
  if (evict(pool, bytes, claim) > 0 || pool.leaving() > 0) return true;
  // Again and again: what goes below may not make the room that is wanted there, for it first pays
  // for what was set aside beyond the budget, and others may be faster. And what was leaving there
  // may have gone between the look at the room and the look at what leaves.
  for (;;) {
    const bool is_made = make_room_below(pool, bytes, claim);
    if (evict(pool, bytes, claim) > 0) return true;
    if (!is_made) return false;
    if (is_anything_leaving()) return true;
  }
}

bool Eviction::make_room_below(MemoryPool& pool, std::size_t bytes, const Claim& claim) {
  const std::uint32_t memory = memory_of(pool);
  bool is_made = false;
  for (const std::uint32_t lower : below(memory, bytes)) {
    MemoryPool& other = *fabric_.memories[lower];
    other.set_watch(&watch_);  // before the look: what comes is told
    const std::size_t wanted = other.room() + bytes;
    if (other.leaving() > 0) {
      spill_ahead(other, wanted, claim);
      is_made = true;
    } else if (level_of(lower) > level_of(memory))
      is_made = try_to_make_room(other, wanted, claim) || is_made;
    else
      is_made = evict(other, wanted, claim) > 0 || is_made;
  }
  return is_made;
}

// The disk takes long: while room is on its way, values that will not be wanted for long leave too,
// so that those who come next find room, and writes overlap with reads.
void Eviction::spill_ahead(MemoryPool& pool, std::size_t bytes, const Claim& claim) {
  if (!fabric_.spill || level_of(memory_of(pool)) != Level::Host) return;
  const std::size_t there = pool.room() + pool.leaving();
  const std::size_t wanted = bytes + pool.budget() / kSpareShare;
  if (there >= wanted) return;
  Candidates candidates = candidates_in(pool, claim);
  evict_these(candidates, choose_far(candidates.each, wanted - there, claim.position));
}

bool Eviction::is_anything_leaving() const {
  return std::any_of(fabric_.memories.begin(), fabric_.memories.end(),
                     [](const auto& pool) { return pool->leaving() > 0; });
}

std::uint32_t Eviction::memory_of(const MemoryPool& pool) const {
  std::uint32_t memory = 0;
  while (fabric_.memories[memory].get() != &pool) ++memory;
  return memory;
}

Eviction::Level Eviction::level_of(std::uint32_t memory) const {
  if (fabric_.spill == memory) return Level::Disk;
  const bool is_host =
      std::any_of(fabric_.places.begin(), fabric_.places.end(), [&](const auto& place) {
        return place->kind == DeviceKind::Socket && place->memory == memory;
      });
  return is_host ? Level::Host : Level::Gpu;
}

// Memories that replicas of so many bytes may be evicted to, the one that is reached soonest first.
std::vector<std::uint32_t> Eviction::below(std::uint32_t memory, std::size_t bytes) const {
  std::vector<std::pair<double, std::uint32_t>> found;
  auto add = [&](std::uint32_t to) {
    const Path& path = fabric_.path(memory, to);
    if (!path.segments.empty()) found.emplace_back(copy_seconds(path, bytes), to);
  };
  const Level level = level_of(memory);
  if (level == Level::Disk) return {};
  // With a disk below, host memories that are both short must not send values to and fro.
  const bool has_disk = level == Level::Host && fabric_.spill;
  for (const auto& place : fabric_.places) {
    if (place->kind != DeviceKind::Socket) continue;
    const MemoryPool& pool = *fabric_.memories[place->memory];
    if (!has_disk || pool.room() >= pool.budget() / 2 + MemoryPool::round_up(bytes))
      add(place->memory);
  }
  if (has_disk) add(*fabric_.spill);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::uint32_t> memories;
  for (const auto& [seconds, to] : found)
    if (std::find(memories.begin(), memories.end(), to) == memories.end()) memories.push_back(to);
  return memories;
}

std::size_t Eviction::evict(MemoryPool& pool, std::size_t bytes, const Claim& claim) {
  const std::size_t there = pool.room() + pool.leaving();
  if (bytes <= there) return 0;
  Candidates candidates = candidates_in(pool, claim);
  std::size_t evicted = 0;
  // One that cannot be evicted after all makes another choice necessary.
  while (bytes > there + evicted && !candidates.each.empty())
    evicted += evict_these(
        candidates, choose_victims(candidates.each, bytes - there - evicted, claim.position));
  // Down to the low mark.
  const std::size_t spare = pool.budget() / kSpareShare, wanted = bytes + spare;
  if (evicted > 0 && there + evicted < wanted && fabric_.spill != candidates.memory)
    evicted += evict_these(candidates,
                           choose_spare(candidates.each, wanted - there - evicted, claim.position));
  return evicted;
}

Eviction::Candidates Eviction::candidates_in(MemoryPool& pool, const Claim& claim) {
  Candidates found;
  found.memory = memory_of(pool);
  std::vector<std::uint64_t> anywhere;  // next uses of the values
  {
    std::lock_guard lock(mutex_);
    pool.residents().for_each([&](Replica& replica) {
      TensorState& tensor = *replica.tensor;
      if (!may_be_evicted(replica) || replica.bytes == 0 || is_of(claim, tensor)) return;
      if (!take_handle(tensor)) {
        found_dropped_ = true;
        return;
      }
      found.handles.emplace_back(&tensor);
      found.each.push_back({.bytes = MemoryPool::round_up(replica.bytes)});
    });
    for (std::size_t i = 0; i < found.each.size(); ++i) {
      const NextUses::Next next = uses_.next(found.handles[i].state(), found.memory);
      found.each[i].next_use = next.position;
      found.each[i].is_dead = next.is_dead;
      anywhere.push_back(uses_.next_anywhere(found.handles[i].state()).position);
    }
  }
  const bool may_spill = fabric_.spill && level_of(found.memory) == Level::Host;
  for (std::size_t i = 0; i < found.each.size(); ++i) {
    TensorState& tensor = *found.handles[i].state();
    EvictionCandidate& each = found.each[i];
    std::lock_guard lock(tensor.lock);
    if (may_spill && is_last_above(tensor, found.memory, *fabric_.spill))
      each.next_use = anywhere[i];  // whoever uses it reads the disk
    look_at(tensor, claim.position, each);
  }
  return found;
}

// Takes out what was tried; returns the bytes that will be given back.
std::size_t Eviction::evict_these(Candidates& candidates, const std::vector<std::size_t>& chosen) {
  std::size_t evicted = 0;
  std::size_t refused = std::numeric_limits<std::size_t>::max();
  std::vector<bool> is_gone(candidates.each.size());
  auto must_move = [&](std::size_t i) {
    return !candidates.each[i].is_dead && !candidates.each[i].is_clean;
  };
  for (const std::size_t i : chosen) {
    is_gone[i] = true;
    if (must_move(i) && candidates.each[i].bytes >= refused) continue;
    TensorState& tensor = *candidates.handles[i].state();
    const Argument argument{&tensor, Access::In, nullptr};
    TensorLocks locks(fabric_, {&argument, 1});  // what is written back is a submission
    if (evict_replica(tensor, candidates.memory, candidates.each[i].is_dead))
      evicted += candidates.each[i].bytes;
    else if (std::exchange(found_no_room_, false))
      refused = std::min(refused, candidates.each[i].bytes);
  }
  // What is as large as one that found no room below finds none either.
  for (std::size_t i = 0; i < candidates.each.size(); ++i)
    is_gone[i] = is_gone[i] || (must_move(i) && candidates.each[i].bytes >= refused);
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

// To the nearest memory below that has room. False: there is none.
bool Eviction::write_back(TensorState& tensor, Replica& replica) {
  const std::size_t bytes = tensor.bytes();
  const auto memories = below(replica.memory, bytes);
  const auto to = std::find_if(memories.begin(), memories.end(), [&](std::uint32_t memory) {
    return fabric_.memories[memory]->room() >= MemoryPool::round_up(bytes);
  });
  found_no_room_ = to == memories.end();
  if (found_no_room_) return false;
  Source source{&replica, &fabric_.path(replica.memory, *to)};
  Reservation reservation(fabric_, Budget::Gate);
  if (!reservation.add_way(tensor, source, true)) return false;
  if (fabric_.spill == *to) {  // a disk that is full after all must not cost the value
    source.space = fabric_.memories[*to]->allocate(bytes);
    found_no_room_ = !source.space;
    if (found_no_room_) return false;
  }
  reservation.commit();
  send_copies(fabric_, tensor, source);
  written_back_.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

}  // namespace weft
