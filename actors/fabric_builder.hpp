#pragma once

#include <memory>
#include <vector>

#include "actors/emulated/wires.hpp"
#include "actors/link_actor.hpp"
#include "actors/runtime.hpp"

namespace weft {

/// Places and memories of `machine`, without actors: what each device is called, where its kernels
/// find their data, how much each memory may hold.
void add_places(Fabric& fabric, const Machine& machine, const RuntimeOptions& options, Domain gpus,
                const EmulatedOptions& emulated);

/// A link's actor, with lanes for both directions, for each link that moves data between memories.
std::vector<std::unique_ptr<LinkActor>> add_links(Fabric& fabric, const Machine& machine,
                                                  const EmulatedOptions& emulated, Wires& wires);

/// The ways between all pairs of memories, by the machine's routes. Where no direct way leads,
/// through a host memory. `links` as `add_links` returned them (null where a link has no actor).
void add_paths(Fabric& fabric, const Machine& machine,
               const std::vector<std::unique_ptr<LinkActor>>& links);

/// The rate of each link direction that emulation keeps to; see `EmulatedOptions`.
std::vector<double> wire_rates(const Machine& machine, const EmulatedOptions& emulated);

/// `machine` with `count` more GPUs, spread over its sockets, each behind a PCIe link; emulated
/// ones have no PCI address. What hardware GPUs it has are taken out: they are not the ones that
/// will run.
Machine with_emulated_gpus(Machine machine, std::uint32_t count);

}  // namespace weft
