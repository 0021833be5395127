#pragma once

#include "topology/machine.hpp"

namespace weft {

/// Lays one description of a machine over another of the same machine: `base` tells about the host
/// (hwloc), `over` about the GPUs and what joins them (NCCL, `topo -m`).
///
/// GPUs are the same where PCI address or UUID agree; if the two share neither, and have equally
/// many, they are matched in order (nvidia-smi counts in PCI order), which a warning says. From
/// `over` come: the fabric (NVLink, xGMI, C2C, NVSwitches), replacing that of `base` if `over` has
/// any; PCIe figures, models and sizes where `base` has only assumptions or nothing; ports' rates.
/// GPUs and NICs that only `over` has are added at the memory with the same NUMA number. Where they
/// contradict each other about which memory a GPU is near, `base` is kept and a warning says so. If
/// only `over` has sockets, the two change places.
///
/// Throws `TopologyError` if the GPUs cannot be matched.
Machine overlay(const Machine& base, const Machine& over);

}  // namespace weft
