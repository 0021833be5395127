#pragma once

#include <span>

#include "framework/fabric.hpp"
#include "framework/small_vector.hpp"
#include "framework/submit.hpp"

namespace weft {

/// Submits the sum of the contributions that are not summed up yet, if there are any. The tensor's
/// lock is held.
void sum_up_partials(Fabric& fabric, TensorState& tensor);

/// The `reduce` arguments of one call. Each is given a partial sum of its own, so contributions run
/// in parallel; before any other access the partial sums are added up in submission order, which
/// makes the result the same in every run. Lives under the tensors' locks.
class PartialSet {
 public:
  /// Replaces `reduce` arguments by fresh partial sums and submits the summing-up of the others.
  PartialSet(Fabric& fabric, const Call& call);
  ~PartialSet();
  PartialSet(const PartialSet&) = delete;
  PartialSet& operator=(const PartialSet&) = delete;

  /// The call's arguments, partial sums in place of what they contribute to.
  [[nodiscard]] std::span<const Argument> arguments() const {
    return {arguments_.begin(), arguments_.size()};
  }
  /// The call was submitted: its partial sums belong to their tensors now.
  void commit();

 private:
  struct Opened {
    TensorState* tensor;
    TensorState* partial;
  };
  SmallVector<Argument, 12> arguments_;
  SmallVector<Opened, 2> opened_;
  SmallVector<TensorState*, 4> overwritten_;  // their contributions go with the commit
};

}  // namespace weft
