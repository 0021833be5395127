#pragma once

#include <atomic>
#include <cstdint>

#include "framework/admission.hpp"
#include "framework/op.hpp"

namespace weft {

/// The op mailbox of one actor: many threads push, the owner takes everything at once.
///
/// Two lists: ops that became ready by others settling, which somebody waits for, and ops that were
/// ready when they were submitted, which come in bursts. A push is one compare-and-swap. Only when
/// the owner has parked does it also cost a message
/// (`wake()`): while the owner is awake it looks here by itself, so a burst of ops is one message,
/// or none. An idle neighbour may take the whole list too.
class Mailbox {
 public:
  /// `admission` counts the ops of the device or link this mailbox belongs to; may be null.
  explicit Mailbox(Admission* admission) : admission_(admission) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Hands over an op that became ready. Any thread; never blocks.
  void push(Op* op) { push_to(ready_, op, op); }
  /// Hands over a chain linked by `Op::next`, the newest first. Any thread; never blocks.
  void push_chain(Op* newest, Op* oldest) { push_to(ready_, newest, oldest); }
  /// Hands over an op that was ready when it was submitted: the owner may let a few of them gather.
  void push_submitted(Op* op) { push_to(submitted_, op, op); }

  /// The owner is in an op that takes long: what is pushed now would wait, unless a neighbour takes
  /// it.
  [[nodiscard]] bool is_occupied() const { return occupied_.load(std::memory_order_relaxed); }
  void set_occupied(bool occupied) {
    if (is_occupied() != occupied) occupied_.store(occupied, std::memory_order_relaxed);
  }

  [[nodiscard]] Admission* admission() const { return admission_; }
  [[nodiscard]] bool is_empty() const {
    return ready_.load(std::memory_order_acquire) == nullptr &&
           submitted_.load(std::memory_order_acquire) == nullptr;
  }
  [[nodiscard]] bool is_parked() const { return parked_.load(std::memory_order_relaxed); }

  /// What became ready, oldest first, linked by `Op::next`; null if nothing. Any thread.
  Op* take_ready() { return take_from(ready_); }
  /// What was submitted ready; as `take_ready`.
  Op* take_submitted() { return take_from(submitted_); }
  /// Whether something was submitted ready and is not taken.
  [[nodiscard]] bool has_submitted() const {
    return submitted_.load(std::memory_order_relaxed) != nullptr;
  }

  /// The owner is about to park: the next push wakes it. False, and nothing changed, if there is
  /// something to do first.
  bool prepare_to_park() {
    parked_.store(true, std::memory_order_seq_cst);
    if (ready_.load(std::memory_order_seq_cst) == nullptr &&
        submitted_.load(std::memory_order_seq_cst) == nullptr)
      return true;
    return !parked_.exchange(false);  // a push that saw the flag has sent a wake: go and take it
  }

  /// Wakes the owner if it is parked, without handing over anything.
  void nudge() {
    if (parked_.load(std::memory_order_seq_cst) && parked_.exchange(false)) wake();
  }

 protected:
  ~Mailbox() = default;
  /// Wakes the parked owner. Called by the pushing thread, at most once per park.
  virtual void wake() = 0;

 private:
  void push_to(std::atomic<Op*>& list, Op* newest, Op* oldest) {
    Op* head = list.load(std::memory_order_relaxed);
    do {
      oldest->next = head;
    } while (!list.compare_exchange_weak(head, newest, std::memory_order_seq_cst,
                                         std::memory_order_relaxed));
    nudge();
  }

  static Op* take_from(std::atomic<Op*>& list) {
    if (list.load(std::memory_order_acquire) == nullptr) return nullptr;
    Op* op = list.exchange(nullptr, std::memory_order_acquire);
    Op* oldest_first = nullptr;
    while (op) {
      Op* next = op->next;
      op->next = oldest_first;
      oldest_first = op;
      op = next;
    }
    return oldest_first;
  }

  Admission* const admission_;
  alignas(128) std::atomic<Op*> ready_{nullptr};
  alignas(128) std::atomic<Op*> submitted_{nullptr};
  alignas(128) std::atomic<bool> parked_{false};
  std::atomic<bool> occupied_{false};
};

}  // namespace weft
