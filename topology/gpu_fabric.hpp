#pragma once

#include <vector>

#include "topology/gpu_facts.hpp"

namespace weft {

/// Puts the NVLinks that the facts tell in place of those the machine has, and adds C2C links.
/// `gpu_of` names the machine's GPU of each fact, invalid for facts that have none. Switches that
/// join the same GPUs become one hub. Links over which CUDA copies nothing are left out, with a
/// warning. Where NVML is absent or does not say where links lead, and peer access shows that there
/// must be some, their rates are assumed, with a warning; links that the machine has already are
/// then kept.
void add_nvlinks(Machine& machine, const GpuFacts& facts, const std::vector<GpuId>& gpu_of);

}  // namespace weft
