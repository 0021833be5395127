#include "actors/cuda/discover.hpp"

#include <algorithm>

#include "topology/discover.hpp"
#include "topology/doctor.hpp"

namespace weft {

Machine discover_with_cuda() {
  return discover_with_cuda(read_gpu_facts());
}

Machine discover_with_cuda(const GpuFacts& facts) {
  return with_gpu_facts(discover(), facts);
}

void add_gpu_facts(SystemFacts& system, const Machine& machine, const GpuFacts& facts) {
  if (facts.cuda_problem.empty()) system.gpu_lists["CUDA"] = facts.cuda_order;
  if (facts.nvml_problem.empty()) system.gpu_lists["NVML"] = facts.nvml_order;
  for (const GpuFact& gpu : facts.gpus) system.mig |= gpu.is_mig_enabled || gpu.is_mig_instance();
  const std::vector<int> ordinals = cuda_ordinals(machine, facts);
  const auto reaches = [&](std::uint32_t a, std::uint32_t b) {
    for (const GpuFact& gpu : facts.gpus)
      if (gpu.cuda_ordinal == ordinals[a]) {
        const auto other = static_cast<std::size_t>(ordinals[b]);
        return other < gpu.peers.size() && gpu.peers[other].can_access;
      }
    return false;
  };
  for (std::uint32_t a = 0; a < machine.gpus.size(); ++a)
    for (std::uint32_t b = a + 1; b < machine.gpus.size(); ++b)
      if (ordinals[a] >= 0 && ordinals[b] >= 0 && !(reaches(a, b) && reaches(b, a)))
        system.peers_missing.emplace_back(a, b);
}

}  // namespace weft
