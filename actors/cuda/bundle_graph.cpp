#include "actors/cuda/bundle_graph.hpp"

#include <spdlog/spdlog.h>

#include <map>
#include <memory>

#include "actors/cuda/branched.hpp"
#include "actors/cuda/captured_graph.hpp"
#include "actors/cuda/gemm_plan.hpp"

namespace weft::cuda {
namespace {

// More cost more waits across than they gain (an epoch of the perceptron on an H200, batch 256: 6.7
// ms with one, 6.3 with two, 6.4 and 6.5 with three and four), and each may have scratch memory of
// its own.
constexpr std::uint32_t kMostBranches = 2;

// Long enough to try what comes several times in each run; what comes once is not waited for.
constexpr int kMostWarmRuns = 16;

// What a lane has of a bundle.
struct LaneGraph {
  bool is_warm = false;
  int warm_runs = 0;
  std::unique_ptr<CapturedGraph> graph;
  std::vector<Bundle::Member> refused;  // could not be captured
  int refusals = 0;
  std::vector<const void*> refused_with;  // the branches' scratch then

  [[nodiscard]] bool may_capture(const Bundle& bundle) const {
    constexpr int kMostRefusals = 4;
    return is_warm && refusals < kMostRefusals && refused != bundle.members();
  }
  // Memory cannot be had during a capture. One by one the ops have got what they wanted.
  void forgive_if_grown(BranchedCuda& cuda) {
    if (refused.empty()) return;
    bool is_grown = false;
    for (std::uint32_t b = 0; b < refused_with.size(); ++b)
      is_grown = is_grown || cuda.branch(b).scratch(0) != refused_with[b];
    if (!is_grown) return;
    refused.clear();
    refused_with.clear();
    --refusals;
  }
};

// The graphs outlive the last op of the bundle, which has settled by then.
struct LaneGraphs {
  std::vector<BranchTurn> turns;
  std::map<CUstream_st*, LaneGraph> by_lane;
};

LaneGraphs& graphs_of(const Bundle& bundle) {
  std::shared_ptr<void>& kept = bundle.site().kept;
  if (!kept) {
    auto made = std::make_shared<LaneGraphs>();
    std::vector<double> ns;
    for (const Bundle::Member& op : bundle.members()) ns.push_back(rough_ns(*op));
    made->turns = branch_out(bundle.order(), ns, kMostBranches);
    kept = std::move(made);
  }
  return *static_cast<LaneGraphs*>(kept.get());
}

void bring_up_to_date(BranchedCuda& cuda, const Bundle& bundle, const LaneGraphs& graphs,
                      LaneGraph& lane) {
  if (lane.graph && !lane.graph->fits(cuda)) lane.graph.reset();  // it would use the old scratch
  if (lane.graph && !lane.graph->is_of(bundle)) {
    if (!lane.graph->change(cuda, bundle, graphs.turns)) {
      bundle.site().is_dear_to_change.store(true, std::memory_order_relaxed);
      if (!lane.graph->capture_again(cuda, bundle, graphs.turns)) lane.graph.reset();
    }
  }
  if (lane.graph && lane.graph->fits(cuda)) return;
  lane.graph = CapturedGraph::capture(cuda, bundle, graphs.turns);
  if (lane.graph && lane.graph->fits(cuda)) return;
  lane.graph.reset();
  lane.refused = bundle.members();
  lane.refused_with = CapturedGraph::scratch_of(cuda, graphs.turns);
  ++lane.refusals;
  spdlog::debug("{}: cannot be captured as a graph", bundle.name());
}

}  // namespace

void run_bundle(Cuda& lane_cuda, Op& op) {
  const Bundle& bundle = bundle_of(op);
  bundle.allocate();
  auto& cuda = static_cast<BranchedCuda&>(lane_cuda);
  LaneGraphs& graphs = graphs_of(bundle);
  LaneGraph& lane = graphs.by_lane[cuda.stream()];
  if (lane.may_capture(bundle))
    bring_up_to_date(cuda, bundle, graphs, lane);
  else
    lane.graph.reset();  // of others than those that cannot be captured
  if (lane.graph) return lane.graph->launch(cuda.stream());
  const std::uint64_t undecided = undecided_products();
  for (std::size_t n = 0; n < bundle.members().size(); ++n)
    bundle.run_one(
        n, [&](Op& member) { member.code->cuda(cuda.branch(graphs.turns[n].branch), member); });
  // In a graph nothing is tried any more.
  lane.is_warm = undecided_products() == undecided || ++lane.warm_runs >= kMostWarmRuns;
  lane.forgive_if_grown(cuda);
}

}  // namespace weft::cuda
