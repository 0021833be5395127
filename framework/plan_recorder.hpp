#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "framework/submit.hpp"

namespace weft {

class Future;
struct PlanGraph;
class PlanState;

/// What one thread submits while this lives, as the nodes of a plan. Submission tells it each op it
/// makes; what an op waits for is worked out here once more, from the accesses alone, since ops
/// that have settled meanwhile are no dependencies of the running program but are of every replay.
class PlanRecorder {
 public:
  /// Throws `UsageError` if this thread is recording already.
  explicit PlanRecorder(Fabric& fabric);
  ~PlanRecorder();
  PlanRecorder(const PlanRecorder&) = delete;
  PlanRecorder& operator=(const PlanRecorder&) = delete;

  /// Adds up open reductions, then makes the plan. Throws `UsageError` if something that was
  /// submitted cannot be replayed.
  std::shared_ptr<PlanState> finish();

  /// Done when all has that was submitted so far.
  [[nodiscard]] Future all_done() const;

  /// This thread's for `fabric`; null if it is not recording.
  static PlanRecorder* of(const Fabric& fabric);

  /// An op was made for a call, or a collective, and has not begun. Its tensors' locks are held.
  void add_op(Op* op, std::size_t scalar_bytes, std::span<Op* const> after);
  /// A chunk of a copy of `tensor` was made. As `add_op`.
  void add_copy(Op* op, TensorState& tensor);
  /// `tensor` has a contribution that is not summed up yet. As `add_op`.
  void add_reduced(TensorState& tensor) { tensor_of(&tensor); }
  /// A tensor is made on this thread.
  void note_made(const TensorState* tensor) { made_.insert(tensor); }
  /// Something that no replay can do again; the first is what `finish` throws.
  void refuse(const std::string& what);

 private:
  std::uint32_t new_node(Op* op, std::size_t scalar_bytes);
  std::uint32_t tensor_of(TensorState* tensor);
  std::uint32_t slot_of(Replica* replica);
  void read(std::uint32_t node, std::uint32_t slot);
  void write(std::uint32_t node, std::uint32_t slot);

  Fabric& fabric_;
  PlanRecorder* const outer_;  // of another runtime
  std::unique_ptr<PlanGraph> graph_;
  std::unordered_map<const Op*, std::uint32_t> nodes_;  // counted
  std::unordered_map<const TensorState*, std::uint32_t> tensors_;
  std::unordered_set<const TensorState*> made_;
  std::string problem_;
};

}  // namespace weft
