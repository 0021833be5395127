#include "actors/runtime_parts.hpp"

#include <sched.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>

#include "actors/fabric_builder.hpp"
#include "actors/future_actor.hpp"
#include "actors/messages.hpp"
#include "actors/runtime_options.hpp"
#include "actors/watchdog.hpp"
#include "framework/memory_pool.hpp"
#include "framework/wait_graph.hpp"

namespace weft {
namespace {

std::uint32_t next_runtime_number() {
  static std::atomic<std::uint32_t> next{1};
  return next.fetch_add(1);
}

// The cores' first hardware threads, if this process may run there: a described machine's may not
// exist.
std::vector<int> cpus_of(const Socket& socket, bool pin) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cpus;
  for (const Core& core : socket.cores) {
    const int cpu = static_cast<int>(core.pus.front());
    cpus.push_back(
        pin && cpu < CPU_SETSIZE && CPU_ISSET(static_cast<unsigned>(cpu), &allowed) ? cpu : -1);
  }
  if (cpus.empty()) cpus.push_back(-1);
  return cpus;
}

}  // namespace

Runtime::Parts::Parts(RuntimeOptions given) : options(with_environment(std::move(given))) {
  choose_machine();
  make_system();
  if (options.trace) tracer = std::make_unique<Tracer>();
  fabric = new Fabric;
  fabric->runtime_number = next_runtime_number();
  fabric->tracer = tracer.get();
  fabric->serial = *options.serial;
  add_places(*fabric, machine, options, gpu_domain, *options.emulated);
  start();
}

void Runtime::Parts::choose_machine() {
  machine = std::move(*options.machine);
  if (machine.sockets.empty())
    throw DeviceError("the machine " + machine.source + " has no socket this process may use");
  if (options.gpus == GpuMode::None) return;
  if (options.gpus == GpuMode::Cuda)
    throw DeviceError("gpus cuda: this weft was built without the CUDA engine");
  gpu_domain = Domain::Emulated;
  const std::uint32_t there = static_cast<std::uint32_t>(machine.gpus.size());
  const bool live = machine.source == "live";
  const std::uint32_t wanted =
      options.emulated_gpus ? options.emulated_gpus : (live || there == 0 ? 2 : there);
  if (live || wanted != there) machine = with_emulated_gpus(std::move(machine), wanted);
}

void Runtime::Parts::make_system() {
  system = options.system;
  if (system) return;
  shim::init<caf::id_block::weft>();
  own_config = std::make_unique<caf::actor_system_config>();
  shim::set_threads(*own_config, std::max(1u, std::min(4u, std::thread::hardware_concurrency())));
  own_system = std::make_unique<caf::actor_system>(*own_config);
  system = own_system.get();
}

void Runtime::Parts::run_on_thread(std::vector<Body*> bodies, std::vector<ActorMailbox*> mailboxes,
                                   const std::string& name, int cpu) {
  threads.push_back(std::make_unique<PinnedActor>(*system, std::move(bodies),
                                                  PinnedActorOptions{name, cpu, true}));
  PinnedActor* thread = threads.back().get();
  for (ActorMailbox* mailbox : mailboxes) mailbox->set_waker([thread] { thread->wake(); });
}

void Runtime::Parts::start() {
  for (std::uint32_t s = 0; s < machine.sockets.size(); ++s) {
    const std::vector<int> cpus = cpus_of(machine.sockets[s], options.pin);
    Place& place = *fabric->places[s];
    teams.push_back(
        std::make_unique<SocketTeam>(place, *fabric, static_cast<std::uint32_t>(cpus.size())));
    auto& lanes = teams.back()->lanes();
    for (std::size_t i = 0; i < lanes.size(); ++i)
      run_on_thread({lanes[i].get()}, {&lanes[i]->mailbox()}, place.name + "." + std::to_string(i),
                    cpus[i]);
  }
  wires = std::make_unique<Wires>(wire_rates(machine, *options.emulated));
  links = add_links(*fabric, machine, *options.emulated, *wires);
  add_paths(*fabric, machine, links);

  // A GPU and the links that end at it share a thread; other links share one of their own.
  std::vector<bool> placed(links.size());
  auto take_links = [&](auto&& wanted, std::vector<Body*>& bodies,
                        std::vector<ActorMailbox*>& mailboxes) {
    for (std::size_t l = 0; l < links.size(); ++l) {
      if (!links[l] || placed[l] || !wanted(machine.links[l])) continue;
      placed[l] = true;
      bodies.push_back(links[l].get());
      for (std::size_t d = 0; d < 2; ++d) mailboxes.push_back(&links[l]->direction(d).mailbox);
    }
  };
  if (gpu_domain == Domain::Emulated) {
    for (std::uint32_t g = 0; g < machine.gpus.size(); ++g) {
      Place& place = *fabric->places[machine.sockets.size() + g];
      engines.push_back(
          std::make_unique<EmulatedEngine>(place.name, *options.emulated, tracer.get()));
      EmulatedEngine& engine = *engines.back();
      gpus.push_back(std::make_unique<GpuActor>(place, engine));
      std::vector<Body*> bodies{gpus.back().get()};
      std::vector<ActorMailbox*> mailboxes{&gpus.back()->mailbox()};
      const Node node = GpuId{g};
      take_links([&](const Link& link) { return link.a == node || link.b == node; }, bodies,
                 mailboxes);
      run_on_thread(bodies, mailboxes, place.name, -1);
      for (std::uint32_t lane = 0; lane < engine.lanes(); ++lane)
        run_on_thread({&engine.lane(lane)}, {&engine.lane(lane).mailbox()},
                      place.name + ".lane" + std::to_string(lane), -1);
    }
  }
  std::vector<Body*> bodies;
  std::vector<ActorMailbox*> mailboxes;
  take_links([](const Link&) { return true; }, bodies, mailboxes);
  if (!bodies.empty()) run_on_thread(bodies, mailboxes, "links", -1);
  for (std::size_t l = 0; l < links.size(); ++l) {
    if (!links[l]) continue;
    for (std::size_t d = 0; d < 2; ++d) {
      EmulatedLane& lane = *links[l]->direction(d).lane;
      run_on_thread({&lane}, {&lane.mailbox()}, "link" + std::to_string(l) + (d ? "<" : ">"), -1);
    }
  }
  fabric->link_admissions.push_back(std::make_unique<Admission>(options.admission));
  collectives = std::make_unique<CollectiveActor>(*fabric, fabric->link_admissions.back().get());
  run_on_thread({collectives.get()}, {&collectives->mailbox()}, "collectives", -1);
  future_actor = spawn_future_actor(*system);
  if (options.watchdog->count() == 0) return;
  watched->fabric = fabric;
  // Under the lock, so that the actors are there as long as it looks at their ops.
  auto ask = [watched = watched](auto question) {
    return [watched, question] {
      std::lock_guard lock(watched->mutex);
      if (watched->fabric) return question(*watched->fabric);
      return decltype(question(*watched->fabric))();
    };
  };
  const double silence = 1e-9 * static_cast<double>(options.watchdog->count());
  watchdog = spawn_watchdog(
      *system, *options.watchdog, ask([](const Fabric& f) { return f.settled(); }),
      ask([](const Fabric& f) { return f.in_flight(); }), ask([silence](const Fabric& f) {
        spdlog::warn("nothing has settled for {:.1f} s, {} ops are pending:\n{}", silence,
                     f.in_flight(), describe_waits(f));
      }));
}

Runtime::Parts::~Parts() {
  // A promise that something in flight waited for may still be on its way out of a mailbox.
  while (fabric->in_flight() != 0 || promises_are_settling())
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  {
    std::lock_guard lock(watched->mutex);
    watched->fabric = nullptr;
  }
  fabric->closed.store(true, std::memory_order_release);
  // A message, not an exit, which would overtake what has settled.
  shim::anon_send(future_actor, Stop{});
  if (watchdog) caf::anon_send_exit(watchdog, caf::exit_reason::user_shutdown);
  for (auto& thread : threads) thread->join();
  if (fabric->last_serial) release(std::exchange(fabric->last_serial, nullptr));
  future_actor = nullptr;
  watchdog = nullptr;
  release(fabric);
}

}  // namespace weft
