#include "actors/runtime_parts.hpp"

#include <sched.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "actors/fabric_builder.hpp"
#include "actors/future_actor.hpp"
#include "actors/memory_budgets.hpp"
#include "actors/messages.hpp"
#include "actors/runtime_options.hpp"
#include "actors/simulated/calibrated.hpp"
#include "actors/watchdog.hpp"
#include "framework/memory_pool.hpp"
#include "framework/wait_graph.hpp"
#include "topology/discover.hpp"

#if WEFT_HAVE_CUDA
#include "actors/cuda/backend.hpp"
#include "actors/cuda/gpu_facts.hpp"
#include "topology/gpu_facts.hpp"
#endif

namespace weft {
namespace {

// What submitting an op costs the program; measured with `weft bench dispatch` on a desktop's core.
constexpr VirtualTime::Ns kSubmissionNs = 350;

// Submissions that may wait for memory before their callers do: as far as eviction looks ahead.
constexpr std::int64_t kWindow = 1024;

std::uint32_t next_runtime_number() {
  static std::atomic<std::uint32_t> next{1};
  return next.fetch_add(1);
}

// Where the lanes of a socket run, if this process may run there: a described machine's processors
// may not exist.
std::vector<int> cpus_of(const Socket& socket, SocketLanes lanes, bool pin) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cpus;
  for (const std::uint32_t number : lane_cpus(socket, lanes)) {
    const int cpu = static_cast<int>(number);
    cpus.push_back(
        pin && cpu < CPU_SETSIZE && CPU_ISSET(static_cast<unsigned>(cpu), &allowed) ? cpu : -1);
  }
  if (cpus.empty()) cpus.push_back(-1);
  return cpus;
}

// Where a thread that serves `gpu` should run: next to it, on any core there.
std::vector<int> cpus_near(const Machine& machine, GpuId gpu, bool pin) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cpus;
  if (!pin) return cpus;
  for (MemoryId near : machine.gpus[gpu.value].near)
    for (std::uint32_t cpu : machine.memories[near.value].cpus)
      if (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &allowed)) cpus.push_back(static_cast<int>(cpu));
  return cpus;
}

}  // namespace

Runtime::Parts::Parts(RuntimeOptions given) : options(with_environment(std::move(given))) {
  choose_machine();
  if (!options.spill->empty())
    spill = std::make_unique<Spill>(machine, *options.spill, *options.simulate);
  check_options();  // before there is anything to end
  make_system();
  if (options.trace || *options.simulate) tracer = std::make_unique<Tracer>();
  fabric = new Fabric;
  fabric->runtime_number = next_runtime_number();
  fabric->tracer = tracer.get();
  fabric->serial = *options.serial;
  fabric->bundles = !options.bundles   ? Bundles::Cuda
                    : *options.bundles ? Bundles::AllGpus
                                       : Bundles::None;
  if (*options.simulate)
    simulate();
  else
    make_real();
  if (spill) spill->add_to(real, *options.emulated, tracer.get());
  add_places(*fabric, machine, options, real);
  start();
}

void Runtime::Parts::choose_machine() {
  machine = options.machine ? std::move(*options.machine) : discover();
  if (machine.sockets.empty())
    throw DeviceError("the machine " + machine.source + " has no socket this process may use");
  if (options.gpus == GpuMode::None) return;
  if (*options.simulate) {
    if (options.gpus == GpuMode::Cuda)
      throw DeviceError("gpus cuda: a simulated machine's GPUs are simulated");
    if (options.emulated_gpus && options.emulated_gpus != machine.gpus.size())
      machine = with_emulated_gpus(std::move(machine), options.emulated_gpus);
    if (!machine.gpus.empty()) gpu_domain = Domain::Emulated;
    return;
  }
  if (options.gpus != GpuMode::Emulated && choose_cuda()) {
    gpu_domain = Domain::Cuda;
    return;
  }
  gpu_domain = Domain::Emulated;
  const std::uint32_t there = static_cast<std::uint32_t>(machine.gpus.size());
  const bool live = machine.source == "live";
  const std::uint32_t wanted =
      options.emulated_gpus ? options.emulated_gpus : (live || there == 0 ? 2 : there);
  if (live || wanted != there) machine = with_emulated_gpus(std::move(machine), wanted);
}

void Runtime::Parts::simulate() {
  const SimulatedScale scale(*options.simulated_scale, machine);
  const Calibration* const measured = options.calibration.get();
  if (measured) {
    machine = with_calibrated_links(std::move(machine), *measured);
    for (const std::string& model : models_not_in(*measured, machine, gpu_domain != Domain::Host))
      spdlog::warn("the calibration has no \"{}\": its figures stay assumed ones", model);
  }
  machine = scale.applied(std::move(machine));
  const double submission_ns = measured ? measured->submission_ns.median : kSubmissionNs;
  simulation =
      std::make_unique<Simulation>(std::llround(submission_ns / scale.submission_factor()),
                                   measured ? std::llround(measured->notice_ns.median) : 0);
  tracer->set_clock(simulation->time(), simulation->program());
  simulated = std::make_unique<SimulatedParts>(machine, options, *simulation, tracer.get(), scale);
  real = simulated->realisation(gpu_domain);
  if (!options.trace) tracer->set_recording(false);
}

#if WEFT_HAVE_CUDA

bool Runtime::Parts::choose_cuda() {
  const bool must = options.gpus == GpuMode::Cuda;
  if (machine.source != "live") {
    if (must)
      throw DeviceError("gpus cuda: the machine is described (" + machine.source +
                        "), and CUDA drives this one's GPUs only");
    return false;
  }
  const GpuFacts facts = read_gpu_facts();
  Machine with_facts = with_gpu_facts(machine, facts);
  const std::vector<int> ordinals = weft::cuda_ordinals(with_facts, facts);
  for (int ordinal : ordinals)
    if (ordinal >= 0) cuda_ordinals.push_back(ordinal);
  if (cuda_ordinals.empty()) {
    const std::string why =
        facts.cuda_problem.empty() ? "CUDA shows no device" : facts.cuda_problem;
    if (must) throw DeviceError("gpus cuda: " + why + "; see weft doctor");
    if (!machine.gpus.empty()) spdlog::info("GPUs are emulated: {}; see weft doctor", why);
    return false;
  }
  machine = keep_gpus(std::move(with_facts), [&](GpuId gpu) { return ordinals[gpu.value] >= 0; });
  return true;
}

void Runtime::Parts::make_real() {
  wires = std::make_unique<Wires>(wire_rates(machine, *options.emulated));
  if (gpu_domain != Domain::Cuda) {
    real = emulated_realisation(machine, options, gpu_domain, *wires, tracer.get());
    return;
  }
  cuda::Backend::Options given;
  given.peers = *options.p2p;
  given.lanes = options.cuda_lanes;
  given.staging_threads = options.staging_threads;
  given.precision = *options.precision;
  given.tunes_products = *options.tune_products;
  given.pinned = pinned_budget(*options.memory);
  cuda_backend = std::make_shared<cuda::Backend>(machine, cuda_ordinals, given, tracer.get());
  cuda::Backend& backend = *cuda_backend;
  real.domain = Domain::Cuda;
  real.orders_host_copies = !given.pinned;
  real.budget = [this, &backend](MemoryId id) {
    const Memory& memory = machine.memories[id.value];
    if (memory.kind != MemoryKind::Gpu) return host_budget(memory, options);
    return options.gpu_memory_bytes ? options.gpu_memory_bytes : backend.budget(memory.gpu);
  };
  real.backing = [this, &backend](MemoryId id) {
    const Memory& memory = machine.memories[id.value];
    return memory.kind == MemoryKind::Gpu ? backend.device_backing(memory.gpu)
                                          : backend.host_backing(static_cast<int>(memory.os_index));
  };
  real.copy_lane = [this, &backend](LinkDirection& direction, const std::string& name,
                                    const std::string& lane) {
    const std::uint32_t track = tracer ? tracer->add_track(name, lane, TrackKind::Link) : 0;
    return backend.make_copy_lane(*fabric, direction, track);
  };
  real.are_peers = [&backend](GpuId a, GpuId b) { return backend.are_peers(a, b); };
}

#else

bool Runtime::Parts::choose_cuda() {
  if (options.gpus == GpuMode::Cuda)
    throw DeviceError("gpus cuda: this weft was built without the CUDA engine");
  return false;
}

void Runtime::Parts::make_real() {
  wires = std::make_unique<Wires>(wire_rates(machine, *options.emulated));
  real = emulated_realisation(machine, options, gpu_domain, *wires, tracer.get());
}

#endif

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
                                   const std::string& name, std::vector<int> cpus) {
  if (simulation) {
    simulation->add(std::move(bodies), mailboxes, name);
    return;
  }
  threads.push_back(std::make_unique<PinnedActor>(*system, std::move(bodies),
                                                  PinnedActorOptions{name, std::move(cpus), true}));
  PinnedActor* thread = threads.back().get();
  for (ActorMailbox* mailbox : mailboxes) mailbox->set_waker([thread] { thread->wake(); });
}

void Runtime::Parts::start_sockets() {
  for (std::uint32_t s = 0; s < machine.sockets.size(); ++s) {
    Place& place = *fabric->places[s];
    if (simulated) {
      simulated_sockets.push_back(simulated->make_socket(SocketId{s}, place));
      SimulatedSocket& socket = *simulated_sockets.back();
      run_on_thread({&socket}, {&socket.mailbox()}, place.name, {});
      continue;
    }
    const std::vector<int> cpus = cpus_of(machine.sockets[s], *options.socket_lanes, options.pin);
    teams.push_back(
        std::make_unique<SocketTeam>(place, *fabric, static_cast<std::uint32_t>(cpus.size())));
    auto& lanes = teams.back()->lanes();
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      std::vector<int> core;
      if (cpus[i] >= 0) core.push_back(cpus[i]);
      run_on_thread({lanes[i].get()}, {&lanes[i]->mailbox()}, place.name + "." + std::to_string(i),
                    core);
    }
  }
}

void Runtime::Parts::start() {
  start_sockets();
  const std::vector<Route> routes = direct_routes(machine, real);
  links = add_links(*fabric, machine, real, routes);
  add_paths(*fabric, machine, real, routes, links);
  if (options.relay && real.orders_host_copies) add_reliefs(*fabric, machine, links);
  start_gpus();
  start_links();
  fabric->link_admissions.push_back(std::make_unique<Admission>(options.admission));
  DeviceCollectives* at_once = nullptr;
#if WEFT_HAVE_CUDA
  if (cuda_backend) at_once = cuda_backend->collectives();
#endif
  collectives =
      std::make_unique<CollectiveActor>(*fabric, fabric->link_admissions.back().get(), at_once);
  fabric->collectives = &collectives->mailbox();
  run_on_thread({collectives.get()}, {&collectives->mailbox()}, "collectives", {});
  fabric->link_admissions.push_back(std::make_unique<Admission>(kWindow));
  gate = std::make_unique<GateActor>(*fabric, *fabric->link_admissions.back(), !simulation);
  fabric->gate = &gate->gate();
  run_on_thread({gate.get()}, {&gate->mailbox()}, "gate", {});
  if (!options.run_costs->empty()) start_placer();
  future_actor = spawn_future_actor(*system);
  if (simulation)
    simulation->start(*fabric);
  else
    virtual_waits::count_real(1);
  if (!simulation && options.watchdog->count() > 0) start_watchdog();
}

void Runtime::Parts::take_links(const std::function<bool(const Link&)>& wanted, Actors& actors) {
  placed_links.resize(links.size());
  for (std::size_t l = 0; l < links.size(); ++l) {
    if (!links[l] || placed_links[l] || !wanted(machine.links[l])) continue;
    placed_links[l] = true;
    actors.first.push_back(links[l].get());
    for (std::size_t d = 0; d < 2; ++d) actors.second.push_back(&links[l]->direction(d).mailbox);
  }
}

// A GPU and the links that end at it share a thread, near the GPU.
void Runtime::Parts::start_gpus() {
  if (gpu_domain == Domain::Host) return;
  for (std::uint32_t g = 0; g < machine.gpus.size(); ++g) {
    Place& place = *fabric->places[machine.sockets.size() + g];
    EmulatedEngine* emulated = nullptr;
#if WEFT_HAVE_CUDA
    if (cuda_backend) engines.push_back(cuda_backend->make_engine(GpuId{g}));
#endif
    if (simulated) {
      engines.push_back(simulated->make_engine(GpuId{g}, place));
    } else if (gpu_domain == Domain::Emulated) {
      auto made = std::make_unique<EmulatedEngine>(place.name, *options.emulated, tracer.get());
      emulated = made.get();
      engines.push_back(std::move(made));
    }
    gpus.push_back(std::make_unique<GpuActor>(place, *engines.back()));
    Actors actors{{gpus.back().get()}, {&gpus.back()->mailbox()}};
    const Node node = GpuId{g};
    take_links([&](const Link& link) { return link.a == node || link.b == node; }, actors);
    run_on_thread(
        actors.first, actors.second, place.name,
        emulated || simulated ? std::vector<int>() : cpus_near(machine, GpuId{g}, options.pin));
    if (!emulated) continue;
    for (std::uint32_t lane = 0; lane < emulated->lanes(); ++lane)
      run_on_thread({&emulated->lane(lane)}, {&emulated->lane(lane).mailbox()},
                    place.name + ".lane" + std::to_string(lane), {});
  }
}

// Links that end at no GPU share one thread, but for disks', whose calls of the file system may
// block; what copies without a device to do it has its own.
void Runtime::Parts::start_links() {
  Actors storage;
  take_links([](const Link& link) { return link.kind == LinkKind::Disk; }, storage);
  if (!storage.first.empty()) run_on_thread(storage.first, storage.second, "storage", {});
  Actors actors;
  take_links([](const Link&) { return true; }, actors);
  if (!actors.first.empty()) run_on_thread(actors.first, actors.second, "links", {});
#if WEFT_HAVE_CUDA
  if (cuda_backend) {
    for (const auto& worker : cuda_backend->workers())
      run_on_thread({worker.body}, {worker.mailbox}, "staging", {});
    return;
  }
#endif
  if (simulated) return;
  for (std::size_t l = 0; l < links.size(); ++l) {
    if (!links[l]) continue;
    for (std::size_t d = 0; d < 2; ++d) {
      auto* const lane = dynamic_cast<EmulatedLane*>(links[l]->direction(d).lane.get());
      if (!lane) continue;  // a disk's has threads of its own
      run_on_thread({lane}, {&lane->mailbox()}, "link" + std::to_string(l) + (d ? "<" : ">"), {});
    }
  }
}

void Runtime::Parts::start_watchdog() {
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

// The last wait. A program that would wait for ever ends with who waits for whom.
void Runtime::Parts::end_simulation() {
  try {
    virtual_waits::wait_until_quiet([this] { return fabric->in_flight() == 0; });
  } catch (const UsageError& error) {
    spdlog::critical("the runtime cannot end: {}", error.what());
    std::_Exit(1);
  }
  simulation->stop();
  if (!options.simulated_report->empty()) write_simulated_report();
}

Runtime::Parts::~Parts() {
  if (simulation) end_simulation();
  // A promise that something in flight waited for may still be on its way out of a mailbox.
  while (fabric->in_flight() != 0 || promises_are_settling())
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  if (spill) spill->join();
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
  write_run_costs();
  fabric->placer.store(nullptr, std::memory_order_release);
  fabric->gate = nullptr;
  gate.reset();
  release(fabric);
  if (!simulation) virtual_waits::count_real(-1);
}

}  // namespace weft
