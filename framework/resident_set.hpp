#pragma once

#include <mutex>

#include "framework/spin.hpp"
#include "framework/tensor_state.hpp"

namespace weft {

/// The valid replicas of one memory, the oldest first: what eviction chooses from. Any thread.
class ResidentSet {
 public:
  void add(Replica& replica);
  void remove(Replica& replica);

  /// Calls `look(Replica&)` for each. None of them is freed meanwhile; no tensor's lock may be
  /// taken, for others take this lock under theirs.
  template <class Look>
  void for_each(Look look) {
    std::lock_guard lock(lock_);
    for (Replica* replica = oldest_; replica; replica = replica->newer) look(*replica);
  }

 private:
  SpinLock lock_;
  Replica* oldest_ = nullptr;
  Replica* newest_ = nullptr;
};

}  // namespace weft
