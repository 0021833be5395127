#pragma once

#include <vector>

#include "actors/cuda/memory.hpp"

namespace weft::cuda {

/// Which devices reach each other's memory: asked of the driver, switched on, then tried with a
/// pattern both ways, for a wrongly set up machine copies garbage without an error. A pair that
/// should work and does not is said in a warning. `[from * n + to]`, in the order of `memories`.
/// Blocks for some milliseconds. Throws `DeviceError` for a device that does not answer at all.
std::vector<bool> connect_peers(const std::vector<DeviceState*>& devices,
                                const std::vector<DeviceMemory*>& memories);

/// Lets device `from` reach the memory of `to`, once in a process: the driver calls a second time
/// an error, and tools report it. Any thread. Throws `DeviceError` where the pair cannot.
void enable_peer(int from, int to);

}  // namespace weft::cuda
