#include <omp.h>

#include "apps/bench/executor.hpp"
#include "apps/bench/work.hpp"

namespace weft::bench {
namespace {

// One thread submits; what an op follows is said by addresses, which are never looked at. Threads
// are pinned by the environment the measurement runs in (OMP_PLACES).
class OpenMpExecutor final : public Executor {
 public:
  OpenMpExecutor(const ExecutorSetup& setup, bool reuse)
      : threads_(static_cast<int>(setup.threads)), reuse_(reuse) {}

  double run(const OpGraph& graph) override {
    // libgomp keeps what it knows of an address while tasks name it: a fresh one per op is kinder.
    addresses_.resize(reuse_ ? graph.data() + 1 : graph.ops());
    const Stopwatch watch;
#pragma omp parallel num_threads(threads_)
#pragma omp single
    {
      for (std::uint32_t op = 0; op < graph.ops(); ++op) submit(graph.node(op));
#pragma omp taskwait
    }
    return watch.seconds();
  }

 private:
  void submit(const OpGraph::Node& node) {
    const std::uint32_t op = node.number();
    if (node.written() == OpGraph::kNoData) {
#pragma omp task firstprivate(op)
      run_op(op);
      return;
    }
    char* const base = addresses_.data();
    char* reads[OpGraph::kMaxReads];
    std::size_t count = 0;
    if (reuse_)
      node.for_each_read([&](std::uint32_t datum) { reads[count++] = base + datum; });
    else
      node.for_each_predecessor([&](std::uint32_t before) { reads[count++] = base + before; });
    [[maybe_unused]] char* const written = base + (reuse_ ? node.written() : op);
    if (reuse_ && node.is_update()) {
#pragma omp task firstprivate(op) depend(inout : written[0])
      run_op(op);
    } else if (count == 0) {
#pragma omp task firstprivate(op) depend(out : written[0])
      run_op(op);
    } else {
      // clang-format off
#pragma omp task firstprivate(op) depend(iterator(i = 0 : count), in : reads[i][0]) depend(out : written[0])
      // clang-format on
      run_op(op);
    }
  }

  const int threads_;
  const bool reuse_;
  std::vector<char> addresses_;
};

}  // namespace

std::unique_ptr<Executor> make_openmp(const ExecutorSetup& setup) {
  return std::make_unique<OpenMpExecutor>(setup, false);
}
std::unique_ptr<Executor> make_openmp_reused(const ExecutorSetup& setup) {
  return std::make_unique<OpenMpExecutor>(setup, true);
}

}  // namespace weft::bench
