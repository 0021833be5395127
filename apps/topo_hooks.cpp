#include "apps/topo_hooks.hpp"

#ifdef WEFT_HAVE_CUDA

#include <cstdio>
#include <memory>

#include "actors/cuda/discover.hpp"
#include "actors/cuda/measure_links.hpp"

namespace weft::apps {
namespace {

/// Facts are read once and contexts made once in a run of the command.
class LiveGpus {
 public:
  Machine discover() {
    facts_ = read_gpu_facts();
    return discover_with_cuda(*facts_);
  }

  void add_facts(SystemFacts& system) {
    const Machine machine = discover();
    add_gpu_facts(system, machine, *facts_);
    if (!facts_->cuda_problem.empty()) return;
    try {
      system.peers_wrong = CudaLinkMeter(machine, cuda_ordinals(machine, *facts_)).damaged_peers();
    } catch (const TopologyError& error) {
      std::fprintf(stderr, "direct copies between GPUs were not tried: %s\n", error.what());
    }
  }

  std::optional<LinkFigures> measure(const Machine& machine, LinkId link) {
    if (!facts_) facts_ = read_gpu_facts();
    if (!facts_->cuda_problem.empty()) return std::nullopt;
    if (!meter_) meter_ = std::make_unique<CudaLinkMeter>(machine, cuda_ordinals(machine, *facts_));
    try {
      return meter_->measure(link);
    } catch (const TopologyError& error) {
      std::fprintf(stderr, "link%u: %s\n", link.value, error.what());
      return std::nullopt;
    }
  }

 private:
  std::optional<GpuFacts> facts_;
  std::unique_ptr<CudaLinkMeter> meter_;
};

}  // namespace

TopoHooks live_topo_hooks() {
  const auto gpus = std::make_shared<LiveGpus>();  // shared by the hooks, which outlive this call
  TopoHooks hooks;
  hooks.discover_live = [gpus] { return gpus->discover(); };
  hooks.add_gpu_facts = [gpus](SystemFacts& system) { gpus->add_facts(system); };
  hooks.measure_link = [gpus](const Machine& machine, LinkId link) {
    return gpus->measure(machine, link);
  };
  return hooks;
}

}  // namespace weft::apps

#else

namespace weft::apps {

TopoHooks live_topo_hooks() {
  return {};
}

}  // namespace weft::apps

#endif
