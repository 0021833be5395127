#include "framework/next_uses.hpp"

#include <algorithm>

namespace weft {

void NextUses::drop(const TensorState* tensor, std::uint64_t position) {
  const auto found = uses_.find(tensor);
  if (found == uses_.end()) return;
  std::erase_if(found->second, [&](const Use& use) { return use.position == position; });
  if (found->second.empty()) uses_.erase(found);
}

NextUses::Next NextUses::next(const TensorState* tensor, std::uint32_t memory) const {
  const auto found = uses_.find(tensor);
  if (found == uses_.end()) return {};
  bool is_read = false;
  for (const Use& use : found->second) {
    if (!use.reads) return {.position = kNever, .is_dead = !is_read};
    if (use.memory == memory) return {.position = use.position, .is_dead = false};
    is_read = true;
    if (use.writes) break;
  }
  return {};
}

NextUses::Next NextUses::next_anywhere(const TensorState* tensor) const {
  const auto found = uses_.find(tensor);
  if (found == uses_.end()) return {};
  const Use& first = found->second.front();
  if (!first.reads) return {.position = kNever, .is_dead = true};
  return {.position = first.position, .is_dead = false};
}

}  // namespace weft
