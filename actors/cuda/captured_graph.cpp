#include "actors/cuda/captured_graph.hpp"

#include <algorithm>
#include <utility>

#include "actors/cuda/check.hpp"

namespace weft::cuda {
namespace {

// What the stream's next work comes behind, while it is captured.
bool next_is_behind(CUstream_st* stream, std::vector<cudaGraphNode_t>& nodes) {
  const cudaGraphNode_t* found = nullptr;
  std::size_t count = 0;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &found, nullptr, &count) !=
          cudaSuccess ||
      status != cudaStreamCaptureStatusActive)
    return false;
  nodes.assign(found, found + count);
  return true;
}

bool put_behind(CUstream_st* stream, std::vector<cudaGraphNode_t>& nodes) {
  nodes.reserve(1);  // an array without an element, not a null pointer
  return cudaStreamUpdateCaptureDependencies(stream, nodes.data(), nullptr, nodes.size(),
                                             cudaStreamSetCaptureDependencies) == cudaSuccess;
}

// False if they cannot be had: an edge that carries data (programmatic dependent launch) is an
// error of a call that does not ask for it.
bool find_dependencies(cudaGraphNode_t node, std::vector<cudaGraphNode_t>& nodes) {
  std::size_t count = 0;
  if (cudaGraphNodeGetDependencies(node, nullptr, nullptr, &count) != cudaSuccess) return false;
  nodes.resize(count);
  return count == 0 ||
         cudaGraphNodeGetDependencies(node, nodes.data(), nullptr, &count) == cudaSuccess;
}

bool has(const std::vector<cudaGraphNode_t>& nodes, cudaGraphNode_t node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// The nodes from `before` to `last`, if they are in one row.
bool find_chain(const std::vector<cudaGraphNode_t>& before,
                const std::vector<cudaGraphNode_t>& last, std::vector<cudaGraphNode_t>& chain) {
  if (last == before) return true;  // it enqueues nothing
  if (last.size() != 1) return false;
  std::vector<cudaGraphNode_t> producers;
  for (cudaGraphNode_t node = last[0];;) {
    chain.push_back(node);
    if (!find_dependencies(node, producers)) {
      cudaGetLastError();
      return false;
    }
    if (std::all_of(producers.begin(), producers.end(),
                    [&](cudaGraphNode_t producer) { return has(before, producer); }))
      break;
    if (producers.size() != 1) return false;
    node = producers[0];
  }
  std::reverse(chain.begin(), chain.end());
  return true;
}

template <class Params, class Get, class Set>
bool copy_params(cudaGraphNode_t from, cudaGraphExec_t ready, cudaGraphNode_t to, const Get& get,
                 const Set& set) {
  Params params{};
  return get(from, &params) == cudaSuccess && set(ready, to, &params) == cudaSuccess;
}

// `to` of the executable graph does what `from` of another graph does.
bool copy_node(cudaGraphNode_t from, cudaGraphExec_t ready, cudaGraphNode_t to) {
  cudaGraphNodeType type{}, other{};
  if (cudaGraphNodeGetType(from, &type) != cudaSuccess ||
      cudaGraphNodeGetType(to, &other) != cudaSuccess || type != other)
    return false;
  switch (type) {
    case cudaGraphNodeTypeKernel:
      return copy_params<cudaKernelNodeParams>(from, ready, to, cudaGraphKernelNodeGetParams,
                                               cudaGraphExecKernelNodeSetParams);
    case cudaGraphNodeTypeMemcpy:
      return copy_params<cudaMemcpy3DParms>(from, ready, to, cudaGraphMemcpyNodeGetParams,
                                            cudaGraphExecMemcpyNodeSetParams);
    case cudaGraphNodeTypeMemset:
      return copy_params<cudaMemsetParams>(from, ready, to, cudaGraphMemsetNodeGetParams,
                                           cudaGraphExecMemsetNodeSetParams);
    case cudaGraphNodeTypeHost:
      return copy_params<cudaHostNodeParams>(from, ready, to, cudaGraphHostNodeGetParams,
                                             cudaGraphExecHostNodeSetParams);
    default:
      return false;
  }
}

// Captures what `enqueue` does, which returns false to give up. Null if it cannot be captured.
template <class Enqueue>
cudaGraph_t capture_work(CUstream_st* stream, const Enqueue& enqueue) {
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  bool is_whole = true;
  try {
    is_whole = enqueue();
  } catch (...) {  // launched one by one they say what is wrong
    is_whole = false;
  }
  is_whole = cudaGetLastError() == cudaSuccess && is_whole;
  cudaGraph_t made = nullptr;
  is_whole = cudaStreamEndCapture(stream, &made) == cudaSuccess && is_whole;
  cudaGetLastError();
  if (is_whole) return made;
  if (made) cudaGraphDestroy(made);
  return nullptr;
}

}  // namespace

CapturedGraph::Capture CapturedGraph::capture_members(BranchedCuda& cuda, const Bundle& bundle,
                                                      std::span<const BranchTurn> turns) {
  const std::size_t count = bundle.members().size();
  CUstream_st* const stream = cuda.stream();
  Capture made{nullptr, std::vector<Nodes>(count), std::vector<bool>(count)};
  made.graph.reset(capture_work(stream, [&] {
    std::vector<Nodes> lasts(count);
    for (std::size_t n = 0; n < count; ++n) {
      Nodes before;
      for (const std::uint32_t producer : turns[n].behind)
        for (cudaGraphNode_t node : lasts[producer])
          if (!has(before, node)) before.push_back(node);
      if (!put_behind(stream, before)) return false;
      bundle.run_one(n, [&](Op& op) { op.code->cuda(cuda.branch(turns[n].branch), op); });
      if (!next_is_behind(stream, lasts[n])) return false;
      made.is_chain[n] = find_chain(before, lasts[n], made.nodes[n]);
    }
    return true;
  }));
  return made;
}

CapturedGraph::Capture CapturedGraph::capture_one(Cuda& cuda, const Bundle& bundle, std::size_t n) {
  Capture made{nullptr, std::vector<Nodes>(1), std::vector<bool>(1)};
  made.graph.reset(capture_work(cuda.stream(), [&] {
    bundle.run_one(n, [&](Op& op) { op.code->cuda(cuda, op); });
    Nodes last;
    if (!next_is_behind(cuda.stream(), last)) return false;
    made.is_chain[0] = find_chain({}, last, made.nodes[0]);
    return true;
  }));
  return made;
}

std::vector<const void*> CapturedGraph::scratch_of(BranchedCuda& cuda,
                                                   std::span<const BranchTurn> turns) {
  std::vector<const void*> scratch;
  for (const BranchTurn& turn : turns)
    while (scratch.size() <= turn.branch)
      scratch.push_back(cuda.branch(static_cast<std::uint32_t>(scratch.size())).scratch(0));
  return scratch;
}

std::unique_ptr<CapturedGraph> CapturedGraph::capture(BranchedCuda& cuda, const Bundle& bundle,
                                                      std::span<const BranchTurn> turns) {
  auto made = std::make_unique<CapturedGraph>();
  made->scratch_ = scratch_of(cuda, turns);
  made->captured_ = capture_members(cuda, bundle, turns);
  if (!made->captured_.graph) return nullptr;
  cudaGraphExec_t ready = nullptr;
  const bool is_ready = cudaGraphInstantiate(&ready, made->captured_.graph.get(), 0) == cudaSuccess;
  cudaGetLastError();
  if (!is_ready) return nullptr;
  made->ready_.reset(ready);
  made->members_ = bundle.members();
  return made;
}

bool CapturedGraph::fits(BranchedCuda& cuda) const {
  for (std::uint32_t b = 0; b < scratch_.size(); ++b)
    if (cuda.branch(b).scratch(0) != scratch_[b]) return false;
  return true;
}

// Of two captures of one member; the graphs of both are there.
bool CapturedGraph::take_over(const Nodes& from, const Nodes& to) const {
  if (from.size() != to.size()) return false;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (!copy_node(from[i], ready_.get(), to[i])) {
      cudaGetLastError();
      return false;
    }
  return true;
}

bool CapturedGraph::change(BranchedCuda& cuda, const Bundle& bundle,
                           std::span<const BranchTurn> turns) {
  for (std::size_t n = 0; n < members_.size(); ++n) {
    if (members_[n] == bundle.members()[n]) continue;
    if (!captured_.is_chain[n]) return false;
    const Capture one = capture_one(cuda.branch(turns[n].branch), bundle, n);
    if (!one.graph || !one.is_chain[0] || !take_over(one.nodes[0], captured_.nodes[n]))
      return false;
    members_[n] = bundle.members()[n];
  }
  return true;
}

// Nodes are told by the graph that the executable one was made of: that stays, so each member must
// have as many as then.
bool CapturedGraph::capture_again(BranchedCuda& cuda, const Bundle& bundle,
                                  std::span<const BranchTurn> turns) {
  const Capture again = capture_members(cuda, bundle, turns);
  for (std::size_t n = 0; again.graph && n < members_.size(); ++n)
    if (again.is_chain[n] != captured_.is_chain[n] ||
        again.nodes[n].size() != captured_.nodes[n].size())
      return false;
  cudaGraphExecUpdateResultInfo result{};
  const bool is_done =
      again.graph && cudaGraphExecUpdate(ready_.get(), again.graph.get(), &result) == cudaSuccess;
  cudaGetLastError();
  if (is_done) members_ = bundle.members();
  return is_done;
}

void CapturedGraph::launch(CUstream_st* stream) const {
  WEFT_CHECK_CUDA(cudaGraphLaunch(ready_.get(), stream));
}

}  // namespace weft::cuda
