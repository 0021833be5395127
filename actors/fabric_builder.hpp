#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/emulated/wires.hpp"
#include "actors/link_actor.hpp"
#include "actors/runtime.hpp"
#include "framework/memory_pool.hpp"
#include "topology/route.hpp"

namespace weft {

/// What a link without a known rate counts as, in bytes per second: PCIe 3.0 x16, so that it is
/// neither free nor never used.
inline constexpr double kUnknownRate = 12e9;

/// The disk that host memories evict to.
struct SpillPlace {
  MemoryId memory;
  std::string directory;  ///< for messages
};

/// How the engine of a runtime's GPUs makes memories and links real.
struct Realisation {
  Domain domain = Domain::Host;  ///< of GPUs and of copies that begin or end at one
  /// False: copies to and from host memory begin when the host knows that what they wait for is
  /// done.
  bool orders_host_copies = true;
  /// The memory with this index: bytes it may hold, and where they come from.
  std::function<std::size_t(MemoryId)> budget;
  std::function<MemoryPool::Backing(MemoryId)> backing;
  /// The lane of a link's direction; `name` is the link's, `lane` says where it leads.
  std::function<std::unique_ptr<CopyLane>(LinkDirection&, const std::string& name,
                                          const std::string& lane)>
      copy_lane;
  /// Host memories may evict to it; nothing: they evict to each other only.
  std::optional<SpillPlace> spill;
  /// The lane of a direction of the link that ends at that disk; null: as of other links.
  std::function<std::unique_ptr<CopyLane>(LinkDirection&, const std::string& name,
                                          const std::string& lane)>
      storage_lane;
  /// Whether copies between two GPUs' memories need no stop; null: as the topology says.
  std::function<bool(GpuId, GpuId)> are_peers;
  /// Copies may go to other hosts.
  bool crosses_network = false;
};

/// Budgets, backing and peers as emulated and simulated GPUs have them; no lanes yet. Borrows
/// everything.
Realisation emulated_budgets(const Machine& machine, const RuntimeOptions& options, Domain domain);

/// Emulated GPUs and links, and host memory as the system gives it. Borrows everything.
Realisation emulated_realisation(const Machine& machine, const RuntimeOptions& options,
                                 Domain domain, Wires& wires, Tracer* tracer);

/// What a host memory may hold by the options.
std::size_t host_budget(const Memory& memory, const RuntimeOptions& options);

/// Places and memories of `machine`, without actors: what each device is called, where its kernels
/// find their data, how much each memory may hold.
void add_places(Fabric& fabric, const Machine& machine, const RuntimeOptions& options,
                const Realisation& real);

/// The ways between memories that need no stop in between, by from * memories + to; without hops
/// where there is none.
std::vector<Route> direct_routes(const Machine& machine, const Realisation& real);

/// A link's actor, with lanes for both directions, for each link that moves data between memories
/// over `routes`.
std::vector<std::unique_ptr<LinkActor>> add_links(Fabric& fabric, const Machine& machine,
                                                  const Realisation& real,
                                                  const std::vector<Route>& routes);

/// The ways between all pairs of memories, by the machine's routes. Where no direct way leads, and
/// between GPUs and the disk, through a host memory. `links` as `add_links` returned them (null
/// where a link has no actor).
void add_paths(Fabric& fabric, const Machine& machine, const Realisation& real,
               const std::vector<Route>& routes,
               const std::vector<std::unique_ptr<LinkActor>>& links);

/// Lets links to the host relieve each other where their GPUs of one host have a link of their own.
void add_reliefs(Fabric& fabric, const Machine& machine,
                 const std::vector<std::unique_ptr<LinkActor>>& links);

/// The rate of each link direction that emulation keeps to; see `EmulatedOptions`.
std::vector<double> wire_rates(const Machine& machine, const EmulatedOptions& emulated);

/// `machine` without the GPUs that `is_wanted` says no to, their memories and their links.
Machine keep_gpus(Machine machine, const std::function<bool(GpuId)>& is_wanted);

/// `machine` with `count` more GPUs, spread over its sockets, each behind a PCIe link; emulated
/// ones have no PCI address. What hardware GPUs it has are taken out: they are not the ones that
/// will run.
Machine with_emulated_gpus(Machine machine, std::uint32_t count);

}  // namespace weft
