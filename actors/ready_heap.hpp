#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/op.hpp"

namespace weft {

/// Ready ops of one thread: those of higher priority first, of one priority the one that was
/// submitted first (`Op::ticket`), or, if they are not taken by that, the one that came first. Not
/// shared.
class ReadyHeap {
 public:
  explicit ReadyHeap(bool by_submission) : by_submission_(by_submission) {}

  void push(Op* op) {
    const std::uint32_t arrival = arrivals_++;
    entries_.push_back({op->priority, by_submission_ ? op->ticket : arrival, arrival, op});
    std::push_heap(entries_.begin(), entries_.end(), is_later);
  }
  /// Pushes a chain linked by `Op::next`, oldest first.
  void append(Op* chain) {
    while (chain) {
      Op* next = chain->next;
      push(chain);
      chain = next;
    }
  }
  /// Null if there is none.
  Op* pop() {
    if (entries_.empty()) return nullptr;
    std::pop_heap(entries_.begin(), entries_.end(), is_later);
    Op* op = entries_.back().op;
    entries_.pop_back();
    return op;
  }
  [[nodiscard]] bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    Priority priority;
    std::uint32_t order, arrival;
    Op* op;
  };
  // Both counters may wrap around.
  static bool is_later(const Entry& a, const Entry& b) {
    if (a.priority != b.priority) return a.priority < b.priority;
    const auto orders = static_cast<std::int32_t>(a.order - b.order);
    return orders != 0 ? orders > 0 : static_cast<std::int32_t>(a.arrival - b.arrival) > 0;
  }

  const bool by_submission_;
  std::uint32_t arrivals_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace weft
