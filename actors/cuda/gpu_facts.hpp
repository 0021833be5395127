#pragma once

#include "topology/gpu_facts.hpp"

namespace weft {

/// What CUDA and NVML say about the GPUs of this machine. Never throws for a missing driver,
/// library or GPU: the facts say what is missing. Creates no CUDA context. Blocks for as long as
/// the driver needs to start (up to a second or two where its persistence mode is off). Any thread.
GpuFacts read_gpu_facts();

}  // namespace weft
