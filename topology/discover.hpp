#pragma once

#include <string>

#include "topology/machine.hpp"

namespace weft {

/// What discovery of the live machine may look at.
struct DiscoverOptions {
  bool io = true;  ///< PCI devices, links to them, disks and NICs
};

/// The machine this process runs on, restricted to the hardware threads it may use. Blocks for the
/// time hwloc needs (tens of milliseconds). GPUs that hwloc sees but no engine can drive carry an
/// `unused_reason`. Throws `TopologyError` if hwloc fails.
Machine discover(const DiscoverOptions& options = {});

/// A machine from a description: `"2 sockets x 8 cores, 2 gpus"`.
///
/// Comma-separated parts, any order, each at most once: `N sockets [x M cores [x T threads]]`,
/// `N gpus`, `nvlink [N GB/s]` (every GPU pair), `pcie N GB/s`, `memory N GB` (per socket),
/// `gpu memory N GB`, `N hosts` (all else is per host), `network N GB/s` (a host's NIC and its link
/// to the network). Sizes are binary (1 GB is 1 GiB), rates decimal. Left out: 1 socket x 1 core,
/// no GPU, PCIe 4.0 x16 (25 GB/s payload), no NVLink (300 GB/s where no rate is given), 64 GB, GPUs
/// of 16 GB, 1 host, a network of 50 GB/s. GPUs are spread over the sockets in order; hardware
/// threads count from 0 through all sockets and hosts. Several hosts have a NIC each, at the first
/// socket, joined by one hub. Throws `TopologyError` naming the bad part and the grammar.
Machine parse_machine(const std::string& description);

/// The machine as an indented tree with links and rates, for people.
std::string print_tree(const Machine& machine);

}  // namespace weft
