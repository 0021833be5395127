#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <vector>

#include "actors/cuda/branched.hpp"
#include "framework/bundle.hpp"
#include "framework/bundle_branches.hpp"

namespace weft::cuda {

/// A bundle as an executable CUDA graph of one lane, captured from its members' own variants, with
/// just the orders of `turns` between them. Used by the lane's thread; a member that has been
/// replaced is brought up to date in it.
class CapturedGraph {
 public:
  /// Null if something in it cannot be captured.
  static std::unique_ptr<CapturedGraph> capture(BranchedCuda& cuda, const Bundle& bundle,
                                                std::span<const BranchTurn> turns);

  /// Whether it is what would be captured of `bundle` now.
  [[nodiscard]] bool is_of(const Bundle& bundle) const { return members_ == bundle.members(); }
  /// Whether the branches' scratch memory is where it was then.
  [[nodiscard]] bool fits(BranchedCuda& cuda) const;
  /// Makes it that of `bundle`, which goes on from the one that it was captured of, by its changed
  /// members' nodes alone. False if that cannot be done: it is of no use any more then.
  bool change(BranchedCuda& cuda, const Bundle& bundle, std::span<const BranchTurn> turns);
  /// The same by capturing all of it again.
  bool capture_again(BranchedCuda& cuda, const Bundle& bundle, std::span<const BranchTurn> turns);
  /// Throws `DeviceError`.
  void launch(CUstream_st* stream) const;

  /// The scratch memory of each branch.
  static std::vector<const void*> scratch_of(BranchedCuda& cuda, std::span<const BranchTurn> turns);

 private:
  struct End {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  template <class T>
  using Owned = std::unique_ptr<std::remove_pointer_t<T>, End>;
  using Nodes = std::vector<cudaGraphNode_t>;

  struct Capture {
    Owned<cudaGraph_t> graph;
    std::vector<Nodes> nodes;  // by member, in order; of one that is no chain: none
    std::vector<bool> is_chain;
  };
  // No graph if something cannot be captured.
  static Capture capture_members(BranchedCuda& cuda, const Bundle& bundle,
                                 std::span<const BranchTurn> turns);
  static Capture capture_one(Cuda& cuda, const Bundle& bundle, std::size_t n);
  bool take_over(const Nodes& from, const Nodes& to) const;

  std::vector<Bundle::Member> members_;  // before the graphs: these refer to them
  Capture captured_;
  Owned<cudaGraphExec_t> ready_;
  std::vector<const void*> scratch_;  // by branch
};

}  // namespace weft::cuda
