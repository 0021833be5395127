#pragma once

#include <array>
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
struct Standing;

/// How an op uses a tensor.
enum class Access : std::uint8_t { In, Out, InOut, Reduce };

/// Whether the old value does not matter: `out`, and `reduce` into a partial sum of its own.
inline bool overwrites(Access access) {
  return access == Access::Out || access == Access::Reduce;
}

/// Which of the ops that could begin on a device goes first.
enum class Priority : std::uint8_t { Low, Normal, High };

/// Which device-side waits an engine understands. An op whose producer runs in the same domain may
/// be launched as soon as the producer is *issued*; across domains, and for `Host`, it needs
/// *done*.
enum class Domain : std::uint8_t { Host, Emulated, Cuda };

/// What of a producer an op waits for: its place on a lane, or its end.
enum class Stage : std::uint8_t { Done, Issued };

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

/// One call of a kernel and its future, in one block: header, then argument slots, the producers to
/// wait for on the device, and the kernel's scalar arguments.
///
/// Life: *pending* while `pending` > 0 or nobody launched it; *issued* once its followers of that
/// stage are closed; *done* or *failed* once those of `Done` are (`failure` says which). References
/// are held by whoever runs it, by tensors that name it as writer or reader, and by futures.
///
/// Followers, the ops that wait for it, are in its own block, so that all of them can be fetched at
/// once: in `slots`, filled in order, and where these are used up in `more`. A closed slot takes
/// nobody any more; one that was closed while empty closes all behind it.
struct Op {
  static constexpr std::uint32_t kAlive = 0x0b5e55edu;
  static constexpr std::size_t kSlots = 4;
  static constexpr std::uint8_t kStanding = 0xfe;  // in place of the pool's size class
  static constexpr std::uintptr_t kOrderOnly = 1;  // marks a follower that only wants order
  static constexpr std::uintptr_t kClosed = 2;

  // One cache line for those that make it ready and run it …
  std::atomic<std::uint32_t> pending{1};  // producers not settled, plus one while it is being built
  // kAlive once built, 0 when free; see try_acquire(). Not initialised: blocks begin as zeros, and
  // diagnosis may look at one while the next op is made in it.
  std::uint32_t alive;
  std::uint8_t size_class = 0;
  Priority priority = Priority::Normal;
  std::uint16_t device = 0;
  std::uint16_t arg_count = 0;
  std::uint16_t wait_count = 0;            // producers kept for device-side waits
  std::atomic<Failure*> failure{nullptr};  // set before the slots close; also by failed producers
  Op* next = nullptr;                      // link in the mailbox or queue it is in
  const KernelCode* code = nullptr;
  Mailbox* owner = nullptr;  // null: runs inline, in whoever settles its last producer
  union {
    Replica* stale = nullptr;  // replicas this op makes stale: freed when it settles
    Standing* standing;        // what stands behind an op that a plan keeps; see is_standing()
  };
  std::uint32_t lane = 0;  // lane it was issued on
  // Its place there, where lanes are told apart by events. Before that: its place among those made,
  // exact within a thread, about right between threads.
  std::uint32_t ticket = 0;

  // … and one for those that come behind it. `Done` has the first slot; the others are for
  // `Issued`, or for `Done` too in the domain in which nobody waits for `Issued`.
  alignas(64) std::uint32_t references;  // 0 when free; not initialised, as `alive`
  Domain domain = Domain::Host;
  std::atomic<bool> has_heir{false};     // a follower already prefers the same lane
  std::atomic<bool> is_launched{false};  // marked as issued, where nobody can wait for that
  bool waits_for_program = false;        // behind a promise, by way of others too, when it was made
  std::array<std::atomic<std::uintptr_t>, kSlots> slots{};  // `Op*` and kOrderOnly
  std::array<std::atomic<std::uintptr_t>, 2> more{};        // by stage; see followers.cpp
  std::uint64_t id = 0;

  /// Made once, by a plan, and never freed by who runs it: see `StandingOps`.
  [[nodiscard]] bool is_standing() const { return size_class == kStanding; }

  ArgSlot* args() { return reinterpret_cast<ArgSlot*>(this + 1); }
  Op** waits() { return reinterpret_cast<Op**>(args() + arg_count); }
  void* scalars() { return waits() + wait_count; }

  /// Fetches the block ahead of its use by another core than the one that made it.
  void prefetch() const {
    for (std::size_t line = 0; line < 3; ++line)
      __builtin_prefetch(reinterpret_cast<const char*>(this) + 64 * line, 1);
  }

  /// The slots of a stage: from the first to one behind the last.
  [[nodiscard]] std::size_t first_slot(Stage stage) const { return stage == Stage::Done ? 0 : 1; }
  [[nodiscard]] std::size_t end_slot(Stage stage) const {
    return stage == Stage::Done && domain != Domain::Host ? 1 : kSlots;
  }
  static Op* follower(std::uintptr_t bits) { return reinterpret_cast<Op*>(bits & ~kOrderOnly); }

  /// Fetches the followers known so far ahead of this op's end.
  void prefetch_followers() const {
    for (const auto& slot : slots) {
      const std::uintptr_t bits = slot.load(std::memory_order_relaxed);
      if (bits <= kClosed) return;
      __builtin_prefetch(follower(bits), 1);
    }
  }

  [[nodiscard]] bool is_settled() const {
    return slots[0].load(std::memory_order_acquire) == kClosed;
  }
  [[nodiscard]] bool is_issued() const {
    if (domain == Domain::Host) return is_launched.load(std::memory_order_acquire);
    return slots[1].load(std::memory_order_acquire) == kClosed;
  }
  /// Only after `is_settled()`.
  [[nodiscard]] bool has_failed() const {
    return failure.load(std::memory_order_relaxed) != nullptr;
  }
};

/// `op`, which is being built, is behind `producer`: also behind a promise if that is.
inline void note_wait(Op& op, const Op& producer) {
  if (producer.waits_for_program && !producer.is_settled()) op.waits_for_program = true;
}

/// Adds a reference.
inline void acquire(Op* op) {
  std::atomic_ref(op->references).fetch_add(1, std::memory_order_relaxed);
}

/// For diagnosis, on a block of the pool that may be free or in the making: adds a reference if it
/// holds an op that is built. Any thread.
bool try_acquire(Op* op);

/// Drops `count` references and recycles the block with the last.
void release(Op* op, std::uint32_t count = 1);

/// A new pending op with room for its parts; `pending` is 1.
Op* make_op(const KernelCode* code, std::size_t args, std::size_t waits, std::size_t scalar_bytes,
            std::uint32_t references = 1);

/// `add_follower` where the slots are used up.
bool add_to_more(Op* producer, Stage stage, std::uintptr_t bits);

/// Makes `follower`, whose `pending` counts it, wait for `producer`. False if that is past: nothing
/// to wait for. Any thread. With `order_only`, a failed producer does not fail the follower.
inline bool add_follower(Op* producer, Stage stage, Op* follower, bool order_only) {
  const std::uintptr_t bits =
      reinterpret_cast<std::uintptr_t>(follower) | (order_only ? Op::kOrderOnly : 0);
  const std::size_t end = producer->end_slot(stage);
  for (std::size_t i = producer->first_slot(stage); i < end; ++i) {
    auto& slot = producer->slots[i];
    std::uintptr_t found = slot.load(std::memory_order_acquire);
    if (found == 0 && slot.compare_exchange_strong(found, bits, std::memory_order_acq_rel,
                                                   std::memory_order_acquire))
      return true;
    if (found == Op::kClosed) return false;
  }
  return add_to_more(producer, stage, bits);
}

/// Gives `to`, just made, the scalar arguments of `from`, which has not run.
void copy_scalars(Op& from, Op& to, std::size_t bytes);

/// `add_follower` for a producer that nobody else knows yet.
inline void plant_follower(Op* producer, Stage stage, Op* follower, bool order_only) {
  const std::uintptr_t bits =
      reinterpret_cast<std::uintptr_t>(follower) | (order_only ? Op::kOrderOnly : 0);
  const std::size_t end = producer->end_slot(stage);
  for (std::size_t i = producer->first_slot(stage); i < end; ++i) {
    if (producer->slots[i].load(std::memory_order_relaxed)) continue;
    producer->slots[i].store(bits, std::memory_order_relaxed);
    return;
  }
  add_to_more(producer, stage, bits);
}

/// Why `op` fails if a producer has with `cause`; counted for the caller.
Failure* inherited(Failure* cause, const Op& op);

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

/// Connects `op`, just made and published, to ops it must run behind whatever becomes of them, and
/// gives up its own count.
void wait_for_all(Op* op, std::span<Op* const> producers);

/// Lets go who waits for *issued*: `op` has its place on a lane, they may be launched.
/// Called once, by the owner, before `settle`; an op that never was issued may skip it.
void mark_issued(Op* op, ReadySink& sink);

/// Ends `op` as done, or as failed with `failure` (takes over the reference). Frees what it made
/// stale, satisfies who waits, drops the runner's reference. Inline successors run here, in a loop.
/// Any thread; once per op.
void settle(Op* op, Failure* failure, ReadySink& sink);

}  // namespace weft
