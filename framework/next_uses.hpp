#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

namespace weft {

struct TensorState;

/// When which tensor will be used where, as far as the submissions that wait for memory say. A
/// position is the number of a submission; they rise.
class NextUses {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  /// A use in no memory in particular: a copy to wherever it is wanted.
  static constexpr std::uint32_t kElsewhere = std::numeric_limits<std::uint32_t>::max();

  struct Use {
    std::uint64_t position = 0;
    std::uint32_t memory = kElsewhere;
    bool reads = true;    ///< the value before matters
    bool writes = false;  ///< replicas in other memories are of no use afterwards
  };
  struct Next {
    std::uint64_t position = kNever;  ///< of the next use of a replica in that memory
    bool is_dead = false;             ///< the value is overwritten before anyone reads it
  };

  /// `use` is behind all others of the tensor.
  void add(const TensorState* tensor, const Use& use) { uses_[tensor].push_back(use); }
  /// The submission with this position waits no more.
  void drop(const TensorState* tensor, std::uint64_t position);
  /// The next use of the tensor's replica in `memory`.
  [[nodiscard]] Next next(const TensorState* tensor, std::uint32_t memory) const;
  /// The next use of the value, in whatever memory.
  [[nodiscard]] Next next_anywhere(const TensorState* tensor) const;
  [[nodiscard]] bool is_used(const TensorState* tensor) const { return uses_.contains(tensor); }
  /// Number of tensors that are used at all.
  [[nodiscard]] std::size_t size() const { return uses_.size(); }

 private:
  std::unordered_map<const TensorState*, std::vector<Use>> uses_;  // by position
};

}  // namespace weft
