#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "framework/memory_pool.hpp"
#include "framework/next_uses.hpp"
#include "framework/submit.hpp"

namespace weft {

/// Makes room in memories that are full: replicas that are needed last are dropped, and what is
/// nowhere else is copied first: to the nearest memory of a socket, from there also to the disk
/// that is spilled to, if there is one. What has no room to go to makes room there.
///
/// Room is made for a little more than was asked for, down to a *low mark* of 15/16 of the budget,
/// as far as that costs nothing that anyone is known to need: so that evictions come in batches.
///
/// It decides and submits; the bytes come back when the copies and the ops that use a replica have
/// settled. Called by the gate's thread only, except where said.
class Eviction {
 public:
  /// Whom room is made for.
  struct Claim {
    std::span<const Argument> arguments;  ///< replicas of these stay where they are
    std::uint64_t position = 0;           ///< next uses are as far as they are from here
  };

  /// `uses`, which `mutex` guards, says when replicas will be used; `watch` is told when bytes are
  /// given back. Borrows all of them.
  Eviction(Fabric& fabric, const NextUses& uses, std::mutex& mutex, MemoryWatch& watch)
      : fabric_(fabric), uses_(uses), mutex_(mutex), watch_(watch) {}
  Eviction(const Eviction&) = delete;
  Eviction& operator=(const Eviction&) = delete;

  /// Whether evicting something could make room in `pool`, or room is on its way. Any thread.
  [[nodiscard]] static bool may_help(MemoryPool& pool);

  /// Sees to it that there are `bytes` of room in `pool`, or more than there was, or will be
  /// without anybody's help. False: nothing was found that can go, which need not be so when others
  /// have submitted or ended something since.
  bool make_room(MemoryPool& pool, std::size_t bytes, const Claim& claim);

  /// Replicas evicted so far, and the bytes written back for that. Any thread.
  [[nodiscard]] std::uint64_t evictions() const {
    return evictions_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t bytes_written_back() const {
    return written_back_.load(std::memory_order_relaxed);
  }

 private:
  struct Candidates;

  [[nodiscard]] bool is_anything_leaving() const;
  [[nodiscard]] std::uint32_t memory_of(const MemoryPool& pool) const;
  // How far from the GPUs: what is evicted goes to the same level or a lower one.
  enum class Level : std::uint8_t { Gpu, Host, Disk };
  [[nodiscard]] Level level_of(std::uint32_t memory) const;
  [[nodiscard]] std::vector<std::uint32_t> below(std::uint32_t memory, std::size_t bytes) const;

  bool try_to_make_room(MemoryPool& pool, std::size_t bytes, const Claim& claim);
  void spill_ahead(MemoryPool& pool, std::size_t bytes, const Claim& claim);
  // Makes `bytes` more room where the pool's replicas may go.
  bool make_room_below(MemoryPool& pool, std::size_t bytes, const Claim& claim);
  // Evicts until `bytes` are there or leaving. Returns the bytes that will be given back.
  std::size_t evict(MemoryPool& pool, std::size_t bytes, const Claim& claim);
  Candidates candidates_in(MemoryPool& pool, const Claim& claim);
  std::size_t evict_these(Candidates& candidates, const std::vector<std::size_t>& chosen);
  bool evict_replica(TensorState& tensor, std::uint32_t memory, bool is_dead);
  bool write_back(TensorState& tensor, Replica& replica);

  Fabric& fabric_;
  const NextUses& uses_;
  std::mutex& mutex_;
  MemoryWatch& watch_;
  bool found_no_room_ = false;  // by the newest write-back, below
  bool found_dropped_ = false;  // a tensor whose last handle is gone and whose bytes are not yet
  std::atomic<std::uint64_t> evictions_{0}, written_back_{0};
};

}  // namespace weft
