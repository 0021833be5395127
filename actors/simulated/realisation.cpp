#include "actors/simulated/realisation.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "actors/simulated/calibrated.hpp"
#include "actors/simulated/copy_lane.hpp"
#include "actors/simulated/model.hpp"
#include "framework/trace.hpp"

namespace weft {
namespace {

// Of the rate that an NVLink's data sheet says. Assumed: headers take 1/17 of packets of 256 bytes,
// flow control and idle slots some more. The other kinds' rates are payload already.
constexpr double kNvlinkPayload = 0.9;
// Of the rate of a memory's channels. Assumed: streaming programs reach 80 to 90 % of it.
constexpr double kMemoryPayload = 0.85;

double payload_of(const Link& link, double rate) {
  if (link.provenance == Provenance::Measured) return rate;
  if (link.kind == LinkKind::Nvlink) return kNvlinkPayload * rate;
  const bool is_memory = link.a.kind == NodeKind::Memory || link.b.kind == NodeKind::Memory;
  return link.kind == LinkKind::Bus && is_memory ? kMemoryPayload * rate : rate;
}

// Memory that nothing is ever written to takes no room.
MemoryPool::Backing untouched_host_backing() {
  constexpr std::size_t kLarge = 64 << 10;
  return {.allocate = [](std::size_t bytes) -> void* {
            if (bytes < kLarge) return std::calloc(1, bytes);
            void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            return data == MAP_FAILED ? nullptr : data;
          },
          .free =
              [](void* data, std::size_t bytes) {
                if (bytes < kLarge)
                  std::free(data);
                else
                  munmap(data, bytes);
              },
          .poison = false};
}

// Nobody looks at it: one address serves all.
MemoryPool::Backing untouched_gpu_backing() {
  alignas(64) static std::byte nothing[64];
  return {.allocate = [](std::size_t) -> void* { return nothing; },
          .free = [](void*, std::size_t) {},
          .poison = false};
}

}  // namespace

SimulatedParts::SimulatedParts(const Machine& machine, const RuntimeOptions& options,
                               Simulation& simulation, Tracer* tracer, SimulatedScale scale)
    : machine_(machine),
      options_(options),
      simulation_(simulation),
      tracer_(tracer),
      scale_(std::move(scale)) {
  const double given = options.emulated->link_bytes_per_second;
  bool is_first = true;
  for (std::uint32_t l = 0; l < machine.links.size(); ++l)
    for (double rate : machine.links[l].bytes_per_second) {
      const double factor = scale_.rate_factor(machine, l);
      rate = payload_of(machine.links[l], rate);
      if (given > 0 && machine.links[l].kind != LinkKind::Bus) rate = given * factor;
      const std::uint32_t number =
          simulation.share().add_resource(rate > 0 ? rate : kUnknownRate * factor);
      if (std::exchange(is_first, false)) first_hop_ = number;
    }
}

std::vector<bool> SimulatedParts::used_links() const {
  std::vector<bool> used;
  for (std::uint32_t l = 0; l < machine_.links.size(); ++l)
    used.push_back(simulation_.share().passed(first_hop_ + 2 * l) +
                       simulation_.share().passed(first_hop_ + 2 * l + 1) >
                   0);
  return used;
}

SimulatedLane::Setup SimulatedParts::setup(const std::string& device) const {
  SimulatedLane::Setup made;
  made.simulation = &simulation_;
  made.name = made.device = device;
  made.hooks = &*options_.emulated;
  made.has_data = *options_.data == SimulatedData::Real;
  made.tracer = tracer_;
  return made;
}

Realisation SimulatedParts::realisation(Domain domain) const {
  const bool has_data = *options_.data == SimulatedData::Real;
  Realisation real = emulated_budgets(machine_, options_, domain);
  real.crosses_network = true;
  if (!has_data)
    real.backing = [this](MemoryId id) {
      return machine_.memories[id.value].kind == MemoryKind::Gpu ? untouched_gpu_backing()
                                                                 : untouched_host_backing();
    };
  real.copy_lane = [this](LinkDirection& direction, const std::string& name,
                          const std::string& lane) -> std::unique_ptr<CopyLane> {
    SimulatedLane::Setup made = setup(name);
    made.name += " " + lane;
    made.track = tracer_ ? tracer_->add_track(name, lane, TrackKind::Link) : 0;
    return std::make_unique<SimulatedCopyLane>(std::move(made), first_hop_, *direction.load,
                                               [&direction] { direction.mailbox.nudge(); });
  };
  return real;
}

std::unique_ptr<SimulatedSocket> SimulatedParts::make_socket(SocketId socket, Place& place) const {
  SimulatedSocket::Setup made;
  made.lane = setup(place.name);
  const Socket& there = machine_.sockets[socket.value];
  made.core = core_model(machine_, socket);
  if (const auto* measured = find(there.model, false))
    made.core = calibrated(made.core, *measured, Precision::Fp32);
  made.core = scale_.applied(made.core, machine_, socket);
  made.core.lanes = std::max(1u, lane_cores(there, *options_.socket_lanes));
  const Node memory = MemoryId{place.memory}, here = socket;
  for (std::uint32_t l = 0; l < machine_.links.size(); ++l) {
    const Link& link = machine_.links[l];
    if (link.a == memory && link.b == here) made.memory = first_hop_ + 2 * l;
    if (link.b == memory && link.a == here) made.memory = first_hop_ + 2 * l + 1;
  }
  return std::make_unique<SimulatedSocket>(place, std::move(made));
}

std::unique_ptr<SimulatedEngine> SimulatedParts::make_engine(GpuId gpu, const Place& place) const {
  const EmulatedOptions& given = *options_.emulated;
  DeviceModel model = gpu_model(machine_, gpu, *options_.precision, given);
  const bool is_given = given.flops_per_second > 0 || given.memory_bytes_per_second > 0;
  const std::string& name = machine_.gpus[gpu.value].model;
  const Calibration::Device* const measured = is_given ? nullptr : find(name, true);
  if (measured)  // emulated ones are host threads, which compute in fp32
    model = calibrated(std::move(model), *measured,
                       name == "emulated" ? Precision::Fp32 : *options_.precision);
  return std::make_unique<SimulatedEngine>(setup(place.name), scale_.applied(model, machine_, gpu));
}

const Calibration::Device* SimulatedParts::find(const std::string& model, bool is_gpu) const {
  return options_.calibration ? options_.calibration->find(model, is_gpu) : nullptr;
}

}  // namespace weft
