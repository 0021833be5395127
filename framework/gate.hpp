#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "framework/admission.hpp"
#include "framework/eviction.hpp"
#include "framework/memory_pool.hpp"
#include "framework/next_uses.hpp"
#include "framework/submit.hpp"

namespace weft {

/// Where submissions wait for memory, in program order, when it is short.
///
/// The first submission that finds no room queues here, and so does whatever is submitted until all
/// have gone through. Its caller goes on at once with a *stand-in*: a future that ends as the op
/// will. What is queued is the window that eviction looks ahead in: it says when each replica will
/// be used next. The gate's actor lets a submission through once its bytes can be set aside,
/// evicts what is needed last for it, and is told when bytes are given back. Others overtake one
/// that is stuck if neither writes what the other uses and they want other memories. The oldest
/// always gets its bytes in the end, for what went through needs nothing more to finish.
///
/// Ops whose placement binds late wait here too, for a device that is about to run out of work.
class Gate final : public MemoryWatch {
 public:
  /// `look` wakes the gate's actor, which then calls `look`; any thread. `admission` counts what is
  /// queued; its limit is the length of the window.
  /// `polls`: the actor looks again by itself while `must_poll`.
  Gate(Fabric& fabric, Admission& admission, bool polls, std::function<void()> look);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Something is queued: what is submitted now must queue too.
  [[nodiscard]] bool is_shut() const { return queued_.load(std::memory_order_seq_cst) != 0; }
  /// Whether evicting something could make room in `pool`, or room is on its way.
  [[nodiscard]] static bool may_help(MemoryPool& pool) { return Eviction::may_help(pool); }

  /// Queues a call, which is copied, and returns its stand-in; the caller owns one reference. Waits
  /// while the window is full; never on an actor's thread. Any thread.
  Op* queue(const Call& call);
  /// The same for a copy of `source`'s value into `target`.
  Op* queue_transfer(TensorState* source, TensorState* target, std::uint32_t memory, Place& place);

  /// The stand-in of the last queued submission that writes `tensor`, counted for the caller; null
  /// if there is none.
  Op* queued_writer(const TensorState* tensor);

  /// Lets the gate's actor evict until there is room for `bytes` in `pool`, and waits for that.
  /// False at once if there never will be, and on actors' threads, which must not wait. For
  /// submitters that must submit here and now.
  bool get_room(MemoryPool& pool, std::size_t bytes);
  /// Waits until nothing is queued; not on an actor's thread.
  void wait_until_open();
  /// Whether something queued uses the tensor.
  [[nodiscard]] bool is_queued(const TensorState* tensor);

  /// Lets through what can go. On the actor's thread.
  void look();

  /// Replicas evicted so far, and the bytes written back for that.
  [[nodiscard]] std::uint64_t evictions() const { return eviction_.evictions(); }
  [[nodiscard]] std::uint64_t bytes_written_back() const { return eviction_.bytes_written_back(); }

  /// Something under way may make room without giving bytes back: `look` again.
  [[nodiscard]] bool must_poll() const { return must_poll_; }

  /// Wakes the gate's actor. Any thread.
  void ask_to_look() { look_(); }
  void given_back() override { look_(); }

 private:
  struct Queued;
  class Held;
  struct Request {
    MemoryPool* pool = nullptr;
    std::size_t bytes = 0;
    std::atomic<int> answer{0};  // 1: there is room; -1: there never will be
  };
  enum class Outcome : std::uint8_t { Through, Stuck };

  Op* queue(std::unique_ptr<Queued> entry);
  bool ask_for_room(MemoryPool& pool, std::size_t bytes);
  // How many ops and copies were submitted so far, what waits here not counted, if all of them have
  // settled and nobody is about to submit one. Any thread.
  [[nodiscard]] std::optional<std::int64_t> count_if_quiet() const;
  // Whether something must be looked at again when bytes are given back.
  bool look_at_requests();
  bool look_at_queue();
  using Memories = std::unordered_set<std::uint32_t>;
  // Those in `full` are wanted by older ones.
  Outcome let_through(Queued& entry, const Memories& full);
  bool place(Queued& entry);
  std::size_t give_by_plans(const std::vector<Queued*>& entries);
  std::size_t give_by_plan(const std::vector<Queued*>& entries, PlacementPolicy& policy);
  void plan(const std::vector<Queued*>& entries, const std::vector<std::size_t>& window,
            PlacementPolicy& policy);
  static bool may_go(const std::vector<Queued*>& entries, std::size_t at, std::uint32_t memory);
  std::size_t give_planned(const std::vector<Queued*>& entries,
                           const std::vector<std::size_t>& window);
  void give_place_back(Queued& entry);
  Op* try_submit(Queued& entry, Shortage& shortage);
  void finish(Queued& entry, Op* op);
  void remove(Queued& entry);
  bool make_room(MemoryPool& pool, std::size_t bytes, const Queued* for_whom);

  Fabric& fabric_;
  Admission& admission_;
  const bool polls_;
  const std::function<void()> look_;
  std::atomic<std::uint32_t> queued_{0};
  std::mutex mutex_;
  std::deque<std::unique_ptr<Queued>> queue_;  // only the actor takes out
  NextUses uses_;
  Eviction eviction_;  // looks at `uses_` under `mutex_`
  std::vector<std::shared_ptr<Request>> requests_;
  // The actor's.
  bool must_poll_ = false;
  std::size_t given_by_plan_ = 0;         // ops, since the newest
  std::int64_t settled_when_stuck_ = -1;  // ops, when a plan gave nothing
  double far_ahead_ = 0;                  // what begins later than that is not given yet
  std::uint64_t next_position_ = 1;
};

}  // namespace weft
