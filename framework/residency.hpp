#pragma once

#include "framework/fabric.hpp"
#include "framework/small_vector.hpp"
#include "framework/submit.hpp"
#include "framework/tensor_state.hpp"

namespace weft {

/// Something an op must wait for.
struct Dependency {
  Op* producer = nullptr;
  bool order_only = false;  ///< only order: its failure does not matter
  bool until_done = false;  ///< *issued* is not enough, whatever the domains
};

/// The set of ops that one op waits for, each once. Borrowed pointers: valid under the tensors'
/// locks.
class DependencySet {
 public:
  /// Adds `producer` unless it is null or settled without failure that matters.
  void add(Op* producer, bool order_only, bool until_done = false);
  [[nodiscard]] const SmallVector<Dependency, 16>& all() const { return list_; }
  [[nodiscard]] std::size_t size() const { return list_.size(); }

 private:
  SmallVector<Dependency, 16> list_;
};

/// The replica to copy from and the way it takes.
struct Source {
  Replica* replica = nullptr;
  const Path* path = nullptr;
  void* space = nullptr;  ///< of the replica at the end; null: the link's actor allocates it
};

/// The valid replica in `memory`, or null. The tensor's lock is held, as in all that follows.
Replica* find_replica(const TensorState& tensor, std::uint32_t memory);

/// What makes `replica` valid: its copy, or the tensor's last write. May be null.
inline Op* producer_of(const Replica& replica) {
  return replica.ready ? replica.ready : replica.tensor->writer;
}

/// How long a copy of so many bytes will take on `path`, by what the links publish about rate and
/// queue.
double copy_seconds(const Path& path, std::size_t bytes);

/// The valid replica that can be in `memory` soonest, by what the links publish about rate and
/// queue. Null replica if the tensor has no value; null path if there is no way.
Source choose_source(const Fabric& fabric, const TensorState& tensor, std::uint32_t memory);

/// A new replica, not yet among the tensor's, its bytes already reserved.
Replica* make_replica(Fabric& fabric, TensorState& tensor, std::uint32_t memory);

/// Sends copies along `source.path` and returns the replica at its end, with the last copy as its
/// `ready`. Replicas at memories on the way become valid too. With `target`, the last hop writes
/// into it (a replica of another tensor) instead, and the returned copy is counted for the caller.
Replica* send_copies(Fabric& fabric, TensorState& tensor, const Source& source,
                     Replica* target = nullptr, Op** last_copy = nullptr,
                     const DependencySet* target_dependencies = nullptr);

/// Notes that `op` reads the tensor. Takes a reference that the caller has counted already.
void add_reader(TensorState& tensor, Op* op);

/// What a write must wait for: all reads since the last write, or that write.
void add_write_dependencies(const TensorState& tensor, DependencySet& set);

/// `op` is the tensor's new writer, `kept` its only valid replica (null: none). The others go to
/// `op->stale`. Takes a reference to `op` that the caller has counted already.
void become_writer(TensorState& tensor, Op* op, Replica* kept);

/// In serial mode, the next op waits for `op`. The serial mutex is held.
void remember_serial(Fabric& fabric, Op* op);

/// Connects `op` to what it waits for; afterwards the caller calls `satisfy` once. `op->waits()`
/// must have room for those of its own domain.
void connect(Op* op, const DependencySet& set);

/// The part of `connect` that makes `op` follow the producers, whose count `op->pending` holds:
/// those it waits for on the device go to `op->waits()` from `waits` on. Returns how many had
/// settled.
std::uint32_t follow(Op* op, const DependencySet& set, std::uint32_t waits);

/// Makes `op` follow a producer that may settle at any time. False if that is past; `op` has failed
/// then if the producer has and more than order is wanted.
bool follow_running(Op* op, Op* producer, Stage stage, bool order_only);

/// Whether an op in `domain` may be launched behind a producer that is only issued.
inline bool waits_on_device(Domain domain, Domain producer, bool until_done) {
  return domain != Domain::Host && producer == domain && !until_done;
}

/// How many of `set` an op in `domain` keeps for device-side waits.
std::size_t count_waits(const DependencySet& set, Domain domain);

}  // namespace weft
