#pragma once

#include "actors/cuda/gpu_facts.hpp"
#include "topology/machine.hpp"

namespace weft {

struct SystemFacts;

/// The machine this process runs on: `discover()` with what CUDA and NVML say about its GPUs laid
/// over it. Where there is no driver or no GPU it is `discover()` plus a warning that says why no
/// GPU is driven, and every NVIDIA GPU has that reason. Creates no CUDA context. Throws
/// `TopologyError` if hwloc fails.
Machine discover_with_cuda();

/// The same with facts read before. Which CUDA device a GPU of the machine is, `cuda_ordinals`
/// says.
Machine discover_with_cuda(const GpuFacts& facts);

/// Adds to what `weft doctor` judges: GPUs in the order of CUDA and of NVML, pairs of the machine's
/// GPUs without peer access, MIG. Creates no CUDA context.
void add_gpu_facts(SystemFacts& system, const Machine& machine, const GpuFacts& facts);

}  // namespace weft
