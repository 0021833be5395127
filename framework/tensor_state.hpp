#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/op.hpp"
#include "framework/shape.hpp"
#include "framework/small_vector.hpp"
#include "framework/spin.hpp"

namespace weft {

class MemoryPool;
struct Fabric;
struct TensorState;

/// The bytes of a tensor in one memory. `data` is null until the first op that writes it is
/// launched; whoever launches that op sets it, and every other user is ordered behind that op.
struct Replica {
  void* data = nullptr;
  MemoryPool* pool = nullptr;
  TensorState* tensor = nullptr;
  Op* ready = nullptr;  // the write or copy that makes it valid; counted; null: valid at birth
  Replica* next_stale = nullptr;
  std::size_t bytes = 0;
  std::uint32_t memory = 0;  // index of its memory in the fabric
  // Plans that keep it, valid or not: it is freed by none but the last of them, unless it is among
  // the tensor's. Changed under the tensor's lock; eviction looks at it before it has that.
  std::atomic<std::uint32_t> plans{0};
  bool is_resident = false;  // in its memory's set of valid replicas
  bool is_leaving = false;   // valid no more: its bytes go when ops under way have settled
  Replica* older = nullptr;  // neighbours in that set
  Replica* newer = nullptr;
};

/// A contribution to a tensor that was accessed with `reduce`: summed up, in submission order,
/// before the next other access.
struct Partial {
  TensorState* tensor = nullptr;
};

/// Logical data: who wrote it last, who has read it since, which memories hold it. Program order is
/// the order in which submissions take `lock`.
struct TensorState {
  SpinLock lock;
  std::atomic<std::uint32_t> handles{1};
  std::atomic<std::uint32_t> home_lane{kNoLane};  // lane of its socket that its ops prefer
  Op* writer = nullptr;                           // last write; counted; kept when failed
  SmallVector<Replica*, 2> replicas;              // valid ones
  std::vector<Partial>* partials = nullptr;
  SmallVector<Op*, 4> readers;  // reads and copies since that write; counted
  Fabric* fabric = nullptr;     // counted: lives as long as its tensors
  // What ops read while they run, apart from what submissions write.
  alignas(64) Shape shape;
  std::uint32_t element_bytes = 0;
  std::uint32_t element_type = 0;  // index of the type, for checks
  void (*sum_partial)(void* into, const void* from, std::size_t count) = nullptr;
  std::uint64_t last_use = 0;  // number of the last submission that waited for memory and uses it
  double expected_at = 0;      // when its last placed writer ends, by the placer's clock
  bool is_partial = false;     // a contribution to another tensor, soon summed up
  bool is_pinned = false;      // the program looks at its bytes where they are

  static constexpr std::uint32_t kNoLane = 0xffffffffu;
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(shape.size()) * element_bytes;
  }
};

/// `replica` is valid from now on: one of the tensor's. The tensor's lock is held, as in all that
/// follows, or nobody else knows it.
void add_replica(TensorState& tensor, Replica* replica);

/// Takes all replicas out of the tensor's; what becomes of them is up to the caller.
void take_out_replicas(TensorState& tensor);

/// Takes one of the tensor's replicas out and frees it behind all that use it.
void drop_replica(TensorState& tensor, Replica* replica);

/// Frees a list linked by `next_stale`: bytes, reservation and the replicas themselves.
void free_replicas(Replica* first);

/// Drops one handle. With the last, the bytes go as soon as every op that uses them has settled;
/// returns at once. Any thread.
void drop_handle(TensorState* tensor);

/// Takes out replicas whose copy failed though the tensor's value is good, so that the next use
/// copies again; their bytes go behind whatever still uses them. Nothing if the value itself
/// failed. The lock is held.
void discard_failed_copies(TensorState& tensor);

/// `replica` is valid no more, by `op`, which frees it when it settles; one that a plan keeps
/// stays. The caller has taken it out of the tensor's. The lock is held.
void make_stale(Replica* replica, Op* op);

/// A plan keeps `replica` (null: none) in place of `kept`. The locks of their tensors are held.
void keep_for_plan(Replica*& kept, Replica* replica);

/// Why the tensor has no value though it was written: its last writer could never run. Null
/// otherwise. The lock is held.
Failure* failure_instead_of_value(const TensorState& tensor);

/// Drops the contributions that are not summed up yet. The lock is held.
void forget_partials(TensorState& tensor);

/// Number of tensors that exist, their bytes not yet freed included.
std::int64_t live_tensors();

/// A tensor without a value: one handle, no replica. Throws `UsageError` for more than 2^62 bytes.
TensorState* make_tensor_state(Fabric& fabric, const Shape& shape, std::uint32_t element_bytes,
                               std::uint32_t element_type);

}  // namespace weft
