#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/failure.hpp"

namespace weft {

class Mailbox;
struct KernelCode;
struct Op;
struct Replica;

/// How an op uses a tensor.
enum class Access : std::uint8_t { In, Out, InOut, Reduce };

/// Whether the old value does not matter: `out`, and `reduce` into a partial sum of its own.
inline bool overwrites(Access access) {
  return access == Access::Out || access == Access::Reduce;
}

/// Which device-side waits an engine understands. An op whose producer runs in the same domain may
/// be launched as soon as the producer is *issued*; across domains, and for `Host`, it needs
/// *done*.
enum class Domain : std::uint8_t { Host, Emulated, Cuda };

/// A place in a list of ops that wait for the same producer. Lives inside the waiting op.
struct Edge {
  std::atomic<Edge*> next{nullptr};
  /// `Op*`, lowest bit set for an edge that only orders. Atomic, as `next` is, for diagnosis alone:
  /// it reads lists that may be changing.
  std::atomic<std::uintptr_t> successor{0};
};

/// One argument: the replica it uses and how.
class ArgSlot {
 public:
  ArgSlot() = default;
  ArgSlot(Replica* replica, Access access)
      : bits_(reinterpret_cast<std::uintptr_t>(replica) | static_cast<std::uintptr_t>(access)) {}
  [[nodiscard]] Replica* replica() const { return reinterpret_cast<Replica*>(bits_ & ~kMask); }
  [[nodiscard]] Access access() const { return static_cast<Access>(bits_ & kMask); }

 private:
  static constexpr std::uintptr_t kMask = 3;
  std::uintptr_t bits_ = 0;
};

/// One call of a kernel and its future, in one block: header, then edges, argument slots, the
/// producers to wait for on the device, and the kernel's scalar arguments.
///
/// Life: *pending* while `pending` > 0 or nobody launched it; *issued* once `issued_list` is
/// closed; *done* or *failed* once `done_list` is closed (`failure` says which). References are
/// held by whoever runs it, by tensors that name it as writer or reader, and by futures.
struct Op {
  static constexpr std::uint32_t kAlive = 0x0b5e55edu;

  std::atomic<std::uint32_t> references{1};
  std::atomic<std::uint32_t> pending{1};  // edges not satisfied, plus one while it is being built
  // kAlive once built, 0 when free; see is_alive(). Not initialised: blocks begin as zeros, and
  // diagnosis may look at one while the next op is made in it.
  std::uint32_t alive;
  std::uint16_t size_class = 0;
  std::uint16_t device = 0;
  std::atomic<Edge*> done_list{nullptr};    // who waits for done; closed() afterwards
  std::atomic<Edge*> issued_list{nullptr};  // who waits for issued; closed() afterwards
  std::atomic<Failure*> failure{nullptr};   // set before the list closes; also by failed producers
  Op* next = nullptr;                       // link in the mailbox or queue it is in
  const KernelCode* code = nullptr;
  Mailbox* owner = nullptr;  // null: runs inline, in whoever settles its last producer
  Replica* stale = nullptr;  // replicas this op makes stale: freed when it settles
  std::uint64_t id = 0;
  std::uint16_t edge_count = 0;
  std::uint16_t arg_count = 0;
  std::uint16_t wait_count = 0;  // producers kept for device-side waits
  Domain domain = Domain::Host;
  std::atomic<bool> has_heir{false};  // a follower already prefers the same lane
  std::uint32_t lane = 0;             // lane it was issued on
  std::uint32_t ticket = 0;           // its place there, where lanes are told apart by events

  Edge* edges() { return reinterpret_cast<Edge*>(this + 1); }
  ArgSlot* args() { return reinterpret_cast<ArgSlot*>(edges() + edge_count); }
  Op** waits() { return reinterpret_cast<Op**>(args() + arg_count); }
  void* scalars() { return waits() + wait_count; }

  /// Fetches the block ahead of its use by another core than the one that made it.
  void prefetch() const {
    for (std::size_t line = 0; line < 3; ++line)
      __builtin_prefetch(reinterpret_cast<const char*>(this) + 64 * line, 1);
  }

  /// Whether the block holds an op that is built. For diagnosis.
  [[nodiscard]] bool is_alive() {
    return std::atomic_ref(alive).load(std::memory_order_acquire) == kAlive;
  }

  static Edge* closed() { return reinterpret_cast<Edge*>(std::uintptr_t{1}); }
  [[nodiscard]] bool is_settled() const {
    return done_list.load(std::memory_order_acquire) == closed();
  }
  [[nodiscard]] bool is_issued() const {
    return issued_list.load(std::memory_order_acquire) == closed();
  }
  /// Only after `is_settled()`.
  [[nodiscard]] bool has_failed() const {
    return failure.load(std::memory_order_relaxed) != nullptr;
  }
};

/// Adds a reference.
inline void acquire(Op* op) {
  op->references.fetch_add(1, std::memory_order_relaxed);
}

/// Drops `count` references and recycles the block with the last.
void release(Op* op, std::uint32_t count = 1);

/// A new pending op with room for its parts. The block has one reference, `pending` is 1.
Op* make_op(const KernelCode* code, std::size_t edges, std::size_t args, std::size_t waits,
            std::size_t scalar_bytes);

/// Puts `edge` (of `successor`) into `list`. False if the list is closed: nothing to wait for.
/// Any thread. With `order_only`, a failed producer does not fail the successor.
inline bool add_edge(std::atomic<Edge*>& list, Edge* edge, Op* successor, bool order_only) {
  edge->successor.store(reinterpret_cast<std::uintptr_t>(successor) | (order_only ? 1u : 0u),
                        std::memory_order_relaxed);
  Edge* head = list.load(std::memory_order_acquire);
  do {
    if (head == Op::closed()) return false;
    edge->next.store(head, std::memory_order_relaxed);
  } while (!list.compare_exchange_weak(head, edge, std::memory_order_acq_rel,
                                       std::memory_order_acquire));
  return true;
}

/// `op` is built: diagnosis may look at it.
inline void publish(Op* op) {
  std::atomic_ref(op->alive).store(Op::kAlive, std::memory_order_release);
}

/// Where ops that became ready go. The thread that settles an op keeps those of its own mailbox and
/// sends the others to theirs.
class ReadySink {
 public:
  virtual void ready(Op* op) = 0;

 protected:
  ~ReadySink() = default;
};

/// Sends every ready op to its owner's mailbox. For threads that own none.
ReadySink& send_to_owner();
/// The same for an op that is being submitted.
ReadySink& send_submitted();

/// Gives up one of `op`'s pending counts; the last one makes it ready (or settles it as failed, if
/// a producer failed). Any thread.
void satisfy(Op* op, ReadySink& sink);

/// Connects `op`, just made and published, with one edge per producer, to ops it must run behind
/// whatever becomes of them, and gives up its own count.
void wait_for_all(Op* op, std::span<Op* const> producers);

/// Closes the issued list: `op` has its place on a lane, device-side followers may be launched.
/// Called once, by the owner, before `settle`; an op that never was issued may skip it.
void mark_issued(Op* op, ReadySink& sink);

/// Ends `op` as done, or as failed with `failure` (takes over the reference). Frees what it made
/// stale, satisfies who waits, drops the runner's reference. Inline successors run here, in a loop.
/// Any thread; once per op.
void settle(Op* op, Failure* failure, ReadySink& sink);

}  // namespace weft
