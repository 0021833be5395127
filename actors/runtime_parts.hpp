#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "actors/caf_shim.hpp"
#include "actors/collective_actor.hpp"
#include "actors/emulated/engine.hpp"
#include "actors/emulated/wires.hpp"
#include "actors/gpu_actor.hpp"
#include "actors/link_actor.hpp"
#include "actors/pinned_actor.hpp"
#include "actors/runtime.hpp"
#include "actors/socket_team.hpp"
#include "framework/trace.hpp"

namespace weft {

/// Everything a runtime owns, in the order in which it must go.
struct Runtime::Parts {
  explicit Parts(RuntimeOptions options);
  ~Parts();

  RuntimeOptions options;
  Machine machine;
  std::unique_ptr<caf::actor_system_config> own_config;
  std::unique_ptr<caf::actor_system> own_system;
  caf::actor_system* system = nullptr;
  std::unique_ptr<Tracer> tracer;
  Fabric* fabric = nullptr;  // one reference; tensors hold the others
  Domain gpu_domain = Domain::Host;
  std::unique_ptr<Wires> wires;
  std::vector<std::unique_ptr<SocketTeam>> teams;
  std::vector<std::unique_ptr<EmulatedEngine>> engines;
  std::vector<std::unique_ptr<GpuActor>> gpus;
  std::vector<std::unique_ptr<LinkActor>> links;  // null where a link has no actor
  std::unique_ptr<CollectiveActor> collectives;
  std::vector<std::unique_ptr<PinnedActor>> threads;
  caf::actor future_actor, watchdog;

  /// What the watchdog looks at: it ends on a message, some time after the runtime.
  struct Watched {
    std::mutex mutex;
    Fabric* fabric = nullptr;  // null once the runtime ends
  };
  std::shared_ptr<Watched> watched = std::make_shared<Watched>();

 private:
  void choose_machine();
  void make_system();
  void start();
  void run_on_thread(std::vector<Body*> bodies, std::vector<ActorMailbox*> mailboxes,
                     const std::string& name, int cpu);
};

}  // namespace weft
