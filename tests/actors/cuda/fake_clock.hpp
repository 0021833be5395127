#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

/// What stands in for CUDA's streams, events and graphs; see fake_cuda.cpp.
namespace weft::test::fake {

using Ns = std::int64_t;

inline Ns now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// What a node of a graph does to the stream that the graph is launched on.
using Work = std::function<void(void* stream)>;

struct Node {
  cudaGraphNodeType type;
  Work work;
  std::vector<Node*> behind;
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};

/// A capture under way: what is enqueued becomes a node behind the last ones.
struct Capture {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::vector<Node*> last;
};

/// A stream or an event: when everything so far is done.
struct Clock {
  std::atomic<Ns> done_at{0};
  std::unique_ptr<Capture> capture;
};

inline Clock& clock_of(void* handle) {
  static Clock default_stream;
  return handle ? *static_cast<Clock*>(handle) : default_stream;
}

inline void enqueue(void* stream, Ns ns) {
  Clock& clock = clock_of(stream);
  clock.done_at = std::max(clock.done_at.load(), now()) + ns;
}

/// Does `what` now, or when the graph that is captured is launched.
template <class What>
void enqueue(void* stream, Ns ns, cudaGraphNodeType type, const What& what) {
  const auto work = [=](void* launched_on) {
    what();
    enqueue(launched_on, ns);
  };
  Capture* const capture = clock_of(stream).capture.get();
  if (!capture) return work(stream);
  auto node = std::make_unique<Node>(Node{type, work, capture->last});
  capture->last = {node.get()};
  capture->graph->nodes.push_back(std::move(node));
}

}  // namespace weft::test::fake
