#include "actors/fabric_builder.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "framework/memory_pool.hpp"
#include "framework/trace.hpp"
#include "topology/route.hpp"
#include "topology/route_finder.hpp"

namespace weft {
namespace {

// A link without a known rate counts as PCIe 3.0 x16 does, so that it is neither free nor never
// used.
constexpr double kUnknownRate = 12e9;
constexpr std::size_t kEmulatedMemory = std::size_t{4} << 30;

std::size_t physical_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

bool is_gpu_memory(const Machine& machine, std::uint32_t memory) {
  return machine.memories[memory].kind == MemoryKind::Gpu;
}

std::uint32_t hop_number(const Hop& hop) {
  return hop.link.value * 2 + (hop.forward ? 0 : 1);
}

// The link that a copy over `route` is sent to: the slowest.
const Hop& owner_of(const Machine& machine, const Route& route) {
  auto rate = [&](const Hop& hop) {
    const double r = machine.links[hop.link.value].bytes_per_second[hop.forward ? 0 : 1];
    return r > 0 ? r : kUnknownRate;
  };
  return *std::min_element(route.hops.begin(), route.hops.end(),
                           [&](const Hop& a, const Hop& b) { return rate(a) < rate(b); });
}

// Peers reach each other without a stop in host memory over NVLink and its like, or under one
// switch.
bool is_direct(const Machine& machine, std::uint32_t from, std::uint32_t to, const Route& route) {
  if (!is_gpu_memory(machine, from) || !is_gpu_memory(machine, to)) return true;
  return route.route_class == RouteClass::Nvlink || route.route_class == RouteClass::SameSwitch;
}

std::uint32_t host_memory_near(const Machine& machine, std::uint32_t gpu_memory) {
  const GpuId gpu = machine.memories[gpu_memory].gpu;
  if (gpu.is_valid())
    for (MemoryId near : machine.gpus[gpu.value].near) return near.value;
  for (std::uint32_t m = 0; m < machine.memories.size(); ++m)
    if (!is_gpu_memory(machine, m) && !machine.memories[m].near.empty()) return m;
  return 0;
}

bool runs_ops(const Machine& machine, std::uint32_t memory) {
  return is_gpu_memory(machine, memory) || machine.memories[memory].kind != MemoryKind::Disk;
}

// All direct ways between memories, by index pair; no hops where there is none.
std::vector<Route> direct_routes(const Machine& machine) {
  const auto count = static_cast<std::uint32_t>(machine.memories.size());
  const RouteFinder finder(machine);
  std::vector<Route> routes(static_cast<std::size_t>(count) * count);
  for (std::uint32_t from = 0; from < count; ++from)
    for (std::uint32_t to = 0; to < count; ++to) {
      if (from == to || !runs_ops(machine, from) || !runs_ops(machine, to)) continue;
      Route route = finder.find(MemoryId{from}, MemoryId{to});
      if (route.route_class == RouteClass::None || route.route_class == RouteClass::Network)
        continue;
      if (is_direct(machine, from, to, route)) routes[from * count + to] = std::move(route);
    }
  return routes;
}

}  // namespace

void add_places(Fabric& fabric, const Machine& machine, const RuntimeOptions& options, Domain gpus,
                const EmulatedOptions& emulated) {
  for (std::uint32_t m = 0; m < machine.memories.size(); ++m) {
    const Memory& memory = machine.memories[m];
    const bool gpu = memory.kind == MemoryKind::Gpu;
    std::size_t budget = memory.bytes ? memory.bytes : physical_memory();
    if (gpu && emulated.memory_bytes) budget = emulated.memory_bytes;
    if (!gpu) budget = options.host_memory_bytes ? options.host_memory_bytes : budget / 4 * 3;
    fabric.memories.push_back(std::make_unique<MemoryPool>(to_string(MemoryId{m}), budget,
                                                           host_backing(gpu && emulated.poison)));
  }
  auto add = [&](DeviceKind kind, std::uint32_t number, Node node, std::uint32_t memory,
                 Domain domain) {
    auto place = std::make_unique<Place>();
    place->name = to_string(node);
    place->kind = kind;
    place->number = number;
    place->index = static_cast<std::uint32_t>(fabric.places.size());
    place->domain = domain;
    place->memory = memory;
    place->admission = std::make_unique<Admission>(options.admission);
    fabric.places.push_back(std::move(place));
  };
  for (std::uint32_t s = 0; s < machine.sockets.size(); ++s) {
    const auto& near = machine.sockets[s].memories;
    add(DeviceKind::Socket, s, SocketId{s},
        near.empty() ? host_memory_near(machine, 0) : near.front().value, Domain::Host);
  }
  if (gpus == Domain::Host) return;
  for (std::uint32_t g = 0; g < machine.gpus.size(); ++g)
    add(DeviceKind::Gpu, g, GpuId{g}, machine.gpus[g].memory.value, gpus);
}

std::vector<std::unique_ptr<LinkActor>> add_links(Fabric& fabric, const Machine& machine,
                                                  const EmulatedOptions& emulated, Wires& wires) {
  std::set<std::uint32_t> used;
  for (const Route& route : direct_routes(machine))
    if (!route.hops.empty()) used.insert(owner_of(machine, route).link.value);

  for (const Link& link : machine.links)
    for (double rate : link.bytes_per_second) {
      auto load = std::make_unique<LinkLoad>();
      load->bytes_per_second = rate > 0 ? rate : kUnknownRate;
      fabric.loads.push_back(std::move(load));
    }
  std::vector<std::unique_ptr<LinkActor>> actors(machine.links.size());
  for (std::uint32_t l : used) {
    fabric.link_admissions.push_back(std::make_unique<Admission>(std::int64_t{1} << 40));
    actors[l] = std::make_unique<LinkActor>(fabric.link_admissions.back().get());
    for (std::uint32_t d = 0; d < 2; ++d) {
      const Node to = d == 0 ? machine.links[l].b : machine.links[l].a;
      const std::string name = "link" + std::to_string(l);
      const std::string lane = "to " + to_string(to);
      LinkDirection& direction = actors[l]->direction(d);
      direction.load = fabric.loads[l * 2 + d].get();
      EmulatedLane::Setup setup;
      setup.name = name + " " + lane;
      setup.device = name;
      setup.options = &emulated;
      setup.wires = &wires;
      setup.tracer = fabric.tracer;
      setup.track = fabric.tracer ? fabric.tracer->add_track(name, lane, TrackKind::Link) : 0;
      setup.load = direction.load;
      setup.on_copied = [&direction] { direction.mailbox.nudge(); };
      direction.lane = std::make_unique<EmulatedLane>(std::move(setup));
    }
  }
  return actors;
}

void add_paths(Fabric& fabric, const Machine& machine,
               const std::vector<std::unique_ptr<LinkActor>>& links) {
  const auto count = static_cast<std::uint32_t>(machine.memories.size());
  const std::vector<Route> routes = direct_routes(machine);
  auto segment = [&](std::uint32_t from, std::uint32_t to) {
    const Route& route = routes[from * count + to];
    const Hop& owner = owner_of(machine, route);
    const std::uint32_t direction = owner.forward ? 0 : 1;
    Segment made;
    made.owner = &links[owner.link.value]->direction(direction).mailbox;
    made.domain = is_gpu_memory(machine, from) || is_gpu_memory(machine, to) ? Domain::Emulated
                                                                             : Domain::Host;
    made.from = from;
    made.to = to;
    made.load = fabric.loads[hop_number(owner)].get();
    made.latency = route.latency;
    for (const Hop& hop : route.hops) made.hops.push_back(hop_number(hop));
    return made;
  };
  auto has_way = [&](std::uint32_t from, std::uint32_t to) {
    return !routes[from * count + to].hops.empty();
  };
  fabric.paths.resize(static_cast<std::size_t>(count) * count);
  for (std::uint32_t from = 0; from < count; ++from)
    for (std::uint32_t to = 0; to < count; ++to) {
      Path& path = fabric.paths[from * count + to];
      if (from == to) continue;
      if (has_way(from, to)) {
        path.segments.push_back(segment(from, to));
        continue;
      }
      if (!is_gpu_memory(machine, from) || !is_gpu_memory(machine, to)) continue;
      const std::uint32_t near = host_memory_near(machine, from);
      const std::uint32_t far = host_memory_near(machine, to);
      if (has_way(from, near) && has_way(near, to)) {
        path.segments = {segment(from, near), segment(near, to)};
      } else if (has_way(from, near) && has_way(near, far) && has_way(far, to)) {
        path.segments = {segment(from, near), segment(near, far), segment(far, to)};
      }
    }
}

std::vector<double> wire_rates(const Machine& machine, const EmulatedOptions& emulated) {
  std::vector<double> rates;
  for (const Link& link : machine.links)
    for (double rate : link.bytes_per_second) {
      const bool host_only = link.kind == LinkKind::Bus;
      if (emulated.link_bytes_per_second < 0)
        rates.push_back(rate);
      else
        rates.push_back(host_only ? 0 : emulated.link_bytes_per_second);
    }
  return rates;
}

Machine with_emulated_gpus(Machine machine, std::uint32_t count) {
  if (!machine.gpus.empty()) {
    // Keep what is not a GPU, its memory or a link to one; memories keep their order.
    std::vector<std::uint32_t> new_index(machine.memories.size());
    std::vector<Memory> memories;
    for (std::uint32_t m = 0; m < machine.memories.size(); ++m) {
      new_index[m] = static_cast<std::uint32_t>(memories.size());
      if (!is_gpu_memory(machine, m)) memories.push_back(machine.memories[m]);
    }
    auto is_gone = [&](const Node& node) {
      return node.kind == NodeKind::Gpu ||
             (node.kind == NodeKind::Memory && is_gpu_memory(machine, node.index));
    };
    std::erase_if(machine.links,
                  [&](const Link& link) { return is_gone(link.a) || is_gone(link.b); });
    auto renumber = [&](MemoryId& id) {
      if (id.is_valid()) id.value = new_index[id.value];
    };
    for (Link& link : machine.links)
      for (Node* node : {&link.a, &link.b})
        if (node->kind == NodeKind::Memory) node->index = new_index[node->index];
    for (Socket& socket : machine.sockets) {
      std::erase_if(socket.memories, [&](MemoryId id) { return is_gone(Node(id)); });
      for (MemoryId& id : socket.memories) renumber(id);
    }
    for (Hub& hub : machine.hubs)
      for (MemoryId& id : hub.near) renumber(id);
    for (Nic& nic : machine.nics)
      for (MemoryId& id : nic.near) renumber(id);
    for (Disk& disk : machine.disks) renumber(disk.memory);
    machine.memories = std::move(memories);
    machine.gpus.clear();
  }
  const auto sockets = static_cast<std::uint32_t>(machine.sockets.size());
  for (std::uint32_t g = 0; g < count; ++g) {
    const SocketId socket{g * sockets / std::max(count, 1u)};
    Memory memory;
    memory.kind = MemoryKind::Gpu;
    memory.bytes = kEmulatedMemory;
    memory.gpu = GpuId{g};
    Gpu gpu;
    gpu.vendor = "weft";
    gpu.model = "emulated";
    gpu.memory = MemoryId{static_cast<std::uint32_t>(machine.memories.size())};
    gpu.near = machine.sockets[socket.value].memories;
    machine.memories.push_back(memory);
    machine.gpus.push_back(gpu);
    Link link;
    link.kind = LinkKind::Pcie;
    link.a = socket;
    link.b = GpuId{g};
    link.bytes_per_second[0] = link.bytes_per_second[1] = 25e9;  // PCIe 4.0 x16, payload
    link.latency = std::chrono::microseconds(1);
    link.width = 16;
    link.generation = 4;
    machine.links.push_back(link);
  }
  return machine;
}

}  // namespace weft
