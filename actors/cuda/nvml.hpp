#pragma once

#include <string>
#include <vector>

#include "topology/gpu_facts.hpp"

namespace weft {

/// What NVML says: whole GPUs in its order, each followed by its MIG instances.
struct NvmlFacts {
  std::vector<GpuFact> gpus;
  std::string problem;  ///< why NVML could not be asked; empty if it could
  std::string driver;   ///< the driver's version
};

/// Loads NVML at run time and asks it. NVML comes with the driver and may be absent, older or
/// newer: what a version does not know stays at its default. Never throws for that. Creates no CUDA
/// context. Blocks for some tens of milliseconds.
NvmlFacts read_nvml(const std::string& library = "libnvidia-ml.so.1");

}  // namespace weft
