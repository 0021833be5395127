#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "actors/caf_shim.hpp"
#include "actors/collective_actor.hpp"
#include "actors/emulated/engine.hpp"
#include "actors/emulated/wires.hpp"
#include "actors/fabric_builder.hpp"
#include "actors/gate_actor.hpp"
#include "actors/gpu_actor.hpp"
#include "actors/link_actor.hpp"
#include "actors/pinned_actor.hpp"
#include "actors/runtime.hpp"
#include "actors/simulated/realisation.hpp"
#include "actors/socket_team.hpp"
#include "actors/storage/spill.hpp"
#include "framework/placer.hpp"
#include "framework/trace.hpp"

namespace weft {

namespace cuda {
class Backend;
}

/// Everything a runtime owns, in the order in which it must go.
struct Runtime::Parts {
  explicit Parts(RuntimeOptions options);
  ~Parts();

  const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  RuntimeOptions options;
  Machine machine;
  std::unique_ptr<caf::actor_system_config> own_config;
  std::unique_ptr<caf::actor_system> own_system;
  caf::actor_system* system = nullptr;
  std::unique_ptr<Tracer> tracer;
  Fabric* fabric = nullptr;  // one reference; tensors hold the others
  Domain gpu_domain = Domain::Host;
  std::vector<int> cuda_ordinals;  // by GPU, if CUDA drives them
  // Null: emulated. Shared by nobody: the type is incomplete where weft is built without CUDA.
  std::shared_ptr<cuda::Backend> cuda_backend;
  std::unique_ptr<Wires> wires;
  std::unique_ptr<Spill> spill;  // null: host memories do not evict to a disk
  Realisation real;
  std::unique_ptr<Simulation> simulation;  // null: real time
  std::unique_ptr<SimulatedParts> simulated;
  std::vector<std::unique_ptr<SocketTeam>> teams;
  std::vector<std::unique_ptr<SimulatedSocket>> simulated_sockets;
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<std::unique_ptr<GpuActor>> gpus;
  std::vector<std::unique_ptr<LinkActor>> links;  // null where a link has no actor
  std::vector<bool> placed_links;                 // those that have a thread
  std::unique_ptr<CollectiveActor> collectives;
  std::unique_ptr<GateActor> gate;
  std::string run_costs_text;  // empty: no file, or none yet
  std::mutex placing;
  std::unique_ptr<Placer> placer;                          // null until someone asks
  std::vector<std::shared_ptr<PlacementPolicy>> policies;  // the first is the options'
  std::vector<std::unique_ptr<PinnedActor>> threads;
  caf::actor future_actor, watchdog;

  /// What the watchdog looks at: it ends on a message, some time after the runtime.
  struct Watched {
    std::mutex mutex;
    Fabric* fabric = nullptr;  // null once the runtime ends
  };
  std::shared_ptr<Watched> watched = std::make_shared<Watched>();

  /// As `Runtime::anywhere`; null: by the options' policy.
  Device anywhere(std::shared_ptr<PlacementPolicy> policy);

  /// As `Runtime::scale_targets`.
  [[nodiscard]] std::vector<std::string> scale_targets() const;

 private:
  void choose_machine();
  // Throws for budgets, policies and run costs that are not understood; reads the latter.
  void check_options();
  // Whether CUDA drives GPUs of the live machine; if so, `machine` has just these. Throws
  // `DeviceError` if it must and cannot.
  bool choose_cuda();
  void make_real();
  void simulate();
  void start_sockets();
  void start_gpus();
  void start_links();
  void start_watchdog();
  void start_placer();
  [[nodiscard]] std::vector<DeviceForecast> forecasts() const;
  void write_run_costs() const;
  void end_simulation();
  void write_simulated_report() const;
  using Actors = std::pair<std::vector<Body*>, std::vector<ActorMailbox*>>;
  void take_links(const std::function<bool(const Link&)>& wanted, Actors& actors);
  void make_system();
  void start();
  void run_on_thread(std::vector<Body*> bodies, std::vector<ActorMailbox*> mailboxes,
                     const std::string& name, std::vector<int> cpus);
};

}  // namespace weft
