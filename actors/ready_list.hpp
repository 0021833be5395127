#pragma once

#include <cstddef>

#include "framework/op.hpp"

namespace weft {

/// Ready ops of one thread, oldest first. Not shared.
class ReadyList {
 public:
  void push_back(Op* op) {
    op->next = nullptr;
    if (last_)
      last_->next = op;
    else
      first_ = op;
    last_ = op;
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
    Op* op = first_;
    if (!op) return nullptr;
    first_ = op->next;
    if (!first_) last_ = nullptr;
    --count_;
    return op;
  }
  [[nodiscard]] Op* front() const { return first_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return first_ == nullptr; }

 private:
  Op* first_ = nullptr;
  Op* last_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace weft
