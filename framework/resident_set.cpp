#include "framework/resident_set.hpp"

namespace weft {

void ResidentSet::add(Replica& replica) {
  std::lock_guard lock(lock_);
  replica.is_resident = true;
  replica.older = newest_;
  replica.newer = nullptr;
  (newest_ ? newest_->newer : oldest_) = &replica;
  newest_ = &replica;
}

void ResidentSet::remove(Replica& replica) {
  std::lock_guard lock(lock_);
  (replica.older ? replica.older->newer : oldest_) = replica.newer;
  (replica.newer ? replica.newer->older : newest_) = replica.older;
  replica.is_resident = false;
}

}  // namespace weft
