// The graphs of the fake CUDA runtime (see fake_cuda.cpp). A launch does what the nodes do in some
// order that their edges allow, another one each time, so that an edge that is missing shows.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <map>
#include <random>

#include "tests/actors/cuda/fake_clock.hpp"

namespace {

using namespace weft::test::fake;

struct Executable {
  std::vector<Work> work;
  std::vector<std::vector<std::size_t>> behind;
  std::map<const Node*, std::size_t> numbers;  // of the graph that it was made of
  std::mt19937_64 random{7};

  explicit Executable(const Graph& graph) {
    for (const auto& node : graph.nodes) {
      numbers.emplace(node.get(), work.size());
      work.push_back(node->work);
      behind.emplace_back();
      for (const Node* before : node->behind) behind.back().push_back(numbers.at(before));
    }
  }

  void launch(void* stream) {
    std::vector<std::size_t> waits(work.size()), ready;
    std::vector<std::vector<std::size_t>> followers(work.size());
    for (std::size_t n = 0; n < work.size(); ++n) {
      waits[n] = behind[n].size();
      for (const std::size_t before : behind[n]) followers[before].push_back(n);
      if (waits[n] == 0) ready.push_back(n);
    }
    while (!ready.empty()) {
      std::swap(ready[random() % ready.size()], ready.back());
      const std::size_t n = ready.back();
      ready.pop_back();
      work[n](stream);
      for (const std::size_t follower : followers[n])
        if (--waits[follower] == 0) ready.push_back(follower);
    }
  }
};

Node* node_of(cudaGraphNode_t node) {
  return reinterpret_cast<Node*>(node);
}
Executable& executable_of(cudaGraphExec_t graph) {
  return *reinterpret_cast<Executable*>(graph);
}

// What a node does travels in one of the fields of its parameters. FAKE_CUDA_FIXED_NODES=1: no node
// of an executable graph can be changed by itself.
cudaError_t set_work(cudaGraphExec_t graph, cudaGraphNode_t node, const void* from) {
  static const bool are_fixed = std::getenv("FAKE_CUDA_FIXED_NODES") != nullptr;
  if (are_fixed) return cudaErrorNotSupported;
  Executable& executable = executable_of(graph);
  const auto found = executable.numbers.find(node_of(node));
  if (found == executable.numbers.end()) return cudaErrorInvalidValue;
  executable.work[found->second] = static_cast<const Node*>(from)->work;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = clock_of(stream).capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  clock_of(stream).capture = std::make_unique<Capture>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(clock_of(stream).capture->graph.release());
  clock_of(stream).capture.reset();
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long*, cudaGraph_t*,
                                     const cudaGraphNode_t** last, const cudaGraphEdgeData**,
                                     std::size_t* count) {
  cudaStreamIsCapturing(stream, status);
  if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
  const auto& nodes = clock_of(stream).capture->last;
  *last = reinterpret_cast<const cudaGraphNode_t*>(nodes.data());
  *count = nodes.size();
  return cudaSuccess;
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                const cudaGraphEdgeData*, std::size_t count,
                                                unsigned flags) {
  if (!clock_of(stream).capture || flags != cudaStreamSetCaptureDependencies)
    return cudaErrorIllegalState;
  auto& last = clock_of(stream).capture->last;
  last.clear();
  for (std::size_t i = 0; i < count; ++i) last.push_back(node_of(nodes[i]));
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = reinterpret_cast<cudaGraphExec_t>(new Executable(*reinterpret_cast<Graph*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete reinterpret_cast<Executable*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  executable_of(graph).launch(stream);
  return cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t graph, cudaGraph_t from,
                                cudaGraphExecUpdateResultInfo*) {
  const Executable made(*reinterpret_cast<Graph*>(from));
  Executable& executable = executable_of(graph);
  if (made.behind != executable.behind) return cudaErrorGraphExecUpdateFailure;
  executable.work = made.work;
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  *type = node_of(node)->type;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         cudaGraphEdgeData*, std::size_t* count) {
  const auto& behind = node_of(node)->behind;
  if (nodes)
    for (std::size_t i = 0; i < *count; ++i)
      nodes[i] = reinterpret_cast<cudaGraphNode_t>(behind[i]);
  *count = behind.size();
  return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
  params->func = node;
  return cudaSuccess;
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  return set_work(graph, node, params->func);
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* params) {
  params->srcPtr.ptr = node;
  return cudaSuccess;
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* params) {
  return set_work(graph, node, params->srcPtr.ptr);
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params) {
  params->dst = node;
  return cudaSuccess;
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
  return set_work(graph, node, params->dst);
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* params) {
  params->userData = node;
  return cudaSuccess;
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                           const cudaHostNodeParams* params) {
  return set_work(graph, node, params->userData);
}

}  // extern "C"
