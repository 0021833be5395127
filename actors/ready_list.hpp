#pragma once

#include <array>
#include <cstddef>

#include "framework/op.hpp"

namespace weft {

/// Ready ops of one thread: those of higher priority first, of one priority the oldest. Not shared.
class ReadyList {
 public:
  void push_back(Op* op) {
    op->next = nullptr;
    Queue& queue = queues_[static_cast<std::size_t>(op->priority)];
    if (queue.last)
      queue.last->next = op;
    else
      queue.first = op;
    queue.last = op;
    ++count_;
  }
  /// Appends a chain linked by `Op::next`, oldest first.
  void append(Op* chain) {
    while (chain) {
      Op* next = chain->next;
      push_back(chain);
      chain = next;
    }
  }
  Op* pop_front() {
    Queue* const queue = first_queue();
    if (!queue) return nullptr;
    Op* op = queue->first;
    queue->first = op->next;
    if (!queue->first) queue->last = nullptr;
    --count_;
    return op;
  }
  [[nodiscard]] Op* front() const {
    const Queue* const queue = const_cast<ReadyList*>(this)->first_queue();
    return queue ? queue->first : nullptr;
  }
  /// Links all of them as one chain, in order, for somebody else to take; until `unchain` nothing
  /// else may be done with the list.
  Op* chain() {
    Op* first = nullptr;
    for (Queue& queue : queues_) {  // the lowest first
      if (!queue.first) continue;
      queue.last->next = first;
      first = queue.first;
    }
    return first;
  }
  void unchain() {
    for (Queue& queue : queues_)
      if (queue.last) queue.last->next = nullptr;
  }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }

 private:
  struct Queue {
    Op* first = nullptr;
    Op* last = nullptr;
  };
  // Nearly always the one of normal priority.
  Queue* first_queue() {
    if (count_ == 0) return nullptr;
    for (std::size_t i = queues_.size(); i-- > 1;)
      if (queues_[i].first) return &queues_[i];
    return queues_.data();
  }

  std::array<Queue, 3> queues_;  // by priority
  std::size_t count_ = 0;
};

}  // namespace weft
