#pragma once

#include <string>

#include "topology/machine.hpp"

namespace weft {

/// One line about a node: `gpu0  NVIDIA A100-SXM4-40GB, 40 GiB (mem2), 0000:07:00.0`.
std::string describe(const Machine& machine, Node node);

/// One phrase about a link without its ends: `pcie 4.0 x16 25 GB/s (reported)`. Two rates where the
/// directions differ.
std::string describe(const Link& link);

/// `2 sockets, 16 cores, 32 hardware threads, 128 GiB memory, 2 GPUs`.
std::string summary(const Machine& machine);

}  // namespace weft
