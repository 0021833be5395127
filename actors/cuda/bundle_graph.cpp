#include "actors/cuda/bundle_graph.hpp"

#include <cuda_runtime_api.h>
#include <spdlog/spdlog.h>

#include <map>
#include <memory>

#include "actors/cuda/check.hpp"
#include "framework/cuda.hpp"

namespace weft::cuda {
namespace {

struct GraphEnd {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, GraphEnd>;

// What a lane has of a bundle.
struct LaneGraph {
  bool is_warm = false;
  bool is_hopeless = false;
  Owned<cudaGraphExec_t> ready;
  const void* scratch = nullptr;  // of the lane when it was captured
};

// The graphs outlive the last op of the bundle, which has settled by then.
struct LaneGraphs {
  std::map<CUstream_st*, LaneGraph> by_lane;
};

void run_each(Cuda& cuda, Bundle& bundle) {
  bundle.run_each([&](Op& member) { member.code->cuda(cuda, member); });
}

// Null if something in it cannot be captured.
Owned<cudaGraphExec_t> captured(Cuda& cuda, Bundle& bundle) {
  if (cudaStreamBeginCapture(cuda.stream(), cudaStreamCaptureModeRelaxed) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  bool is_whole = true;
  try {
    run_each(cuda, bundle);
  } catch (...) {  // launched one by one they say what is wrong
    is_whole = false;
  }
  is_whole = cudaGetLastError() == cudaSuccess && is_whole;
  cudaGraph_t made = nullptr;
  is_whole = cudaStreamEndCapture(cuda.stream(), &made) == cudaSuccess && is_whole;
  const Owned<cudaGraph_t> graph(made);
  cudaGraphExec_t ready = nullptr;
  if (is_whole && graph) is_whole = cudaGraphInstantiate(&ready, graph.get(), 0) == cudaSuccess;
  cudaGetLastError();
  return Owned<cudaGraphExec_t>(is_whole ? ready : nullptr);
}

}  // namespace

void run_bundle(Cuda& cuda, Op& op) {
  Bundle& bundle = bundle_of(op);
  bundle.allocate();
  if (!bundle.kept) bundle.kept = std::make_shared<LaneGraphs>();
  LaneGraph& lane = static_cast<LaneGraphs*>(bundle.kept.get())->by_lane[cuda.stream()];
  const void* const scratch = cuda.scratch(0);
  if (lane.ready && lane.scratch != scratch) lane.ready.reset();  // it would use the old one
  if (!lane.ready && lane.is_warm && !lane.is_hopeless) {
    lane.ready = captured(cuda, bundle);
    lane.scratch = scratch;
    lane.is_hopeless = !lane.ready || cuda.scratch(0) != scratch;
    if (lane.is_hopeless) {
      lane.ready.reset();
      spdlog::debug("{}: cannot be captured as a graph", bundle.name());
    }
  }
  if (lane.ready)
    WEFT_CHECK_CUDA(cudaGraphLaunch(lane.ready.get(), cuda.stream()));
  else
    run_each(cuda, bundle);
  lane.is_warm = true;
}

}  // namespace weft::cuda
