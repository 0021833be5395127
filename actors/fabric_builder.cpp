#include "actors/fabric_builder.hpp"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <set>

#include "actors/emulated/lane.hpp"
#include "actors/memory_budgets.hpp"
#include "framework/memory_pool.hpp"
#include "framework/trace.hpp"
#include "topology/route.hpp"
#include "topology/route_finder.hpp"

namespace weft {
namespace {

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

bool is_spill(const Realisation& real, std::uint32_t memory) {
  return real.spill && real.spill->memory.value == memory;
}

// The link that a copy over `route` is sent to: the disk's, which alone knows what a replica's data
// are there, else the slowest.
const Hop& owner_of(const Machine& machine, const Realisation& real, std::uint32_t from,
                    std::uint32_t to, const Route& route) {
  if (is_spill(real, from)) return route.hops.front();
  if (is_spill(real, to)) return route.hops.back();
  auto rate = [&](const Hop& hop) {
    const double r = machine.links[hop.link.value].bytes_per_second[hop.forward ? 0 : 1];
    return r > 0 ? r : kUnknownRate;
  };
  return *std::min_element(route.hops.begin(), route.hops.end(),
                           [&](const Hop& a, const Hop& b) { return rate(a) < rate(b); });
}

// Peers reach each other without a stop in host memory over NVLink and its like, or under one
// switch, unless the engine knows better.
bool is_direct(const Machine& machine, std::uint32_t from, std::uint32_t to, const Route& route,
               const Realisation& real) {
  if (is_spill(real, from)) return !is_gpu_memory(machine, to);
  if (is_spill(real, to)) return !is_gpu_memory(machine, from);
  if (!is_gpu_memory(machine, from) || !is_gpu_memory(machine, to)) return true;
  if (route.route_class == RouteClass::Network) return true;
  if (real.are_peers) return real.are_peers(machine.memories[from].gpu, machine.memories[to].gpu);
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

// Of disks only the one that is spilled to does.
bool holds_replicas(const Machine& machine, const Realisation& real, std::uint32_t memory) {
  return machine.memories[memory].kind != MemoryKind::Disk || is_spill(real, memory);
}

// Whether copies between the disk and a memory go over the link.
bool ends_at_spill(const Machine& machine, const Realisation& real, const Link& link) {
  auto is_there = [&](const Node& node) {
    return (node.kind == NodeKind::Memory && is_spill(real, node.index)) ||
           (node.kind == NodeKind::Disk && is_spill(real, machine.disks[node.index].memory.value));
  };
  return is_there(link.a) || is_there(link.b);
}

}  // namespace

std::vector<Route> direct_routes(const Machine& machine, const Realisation& real) {
  constexpr std::uint32_t kMany = 64;  // from here on one search for all routes of a memory
  const auto count = static_cast<std::uint32_t>(machine.memories.size());
  const RouteFinder finder(machine);
  std::vector<Node> all;
  for (std::uint32_t to = 0; to < count; ++to) all.emplace_back(MemoryId{to});
  std::vector<Route> routes(static_cast<std::size_t>(count) * count);
  for (std::uint32_t from = 0; from < count; ++from) {
    if (!holds_replicas(machine, real, from)) continue;
    std::vector<Route> found;
    if (count >= kMany) found = finder.find_from(MemoryId{from}, all);
    for (std::uint32_t to = 0; to < count; ++to) {
      if (from == to || !holds_replicas(machine, real, to)) continue;
      Route route = found.empty() ? finder.find(MemoryId{from}, MemoryId{to}) : found[to];
      if (route.route_class == RouteClass::None) continue;
      if (route.route_class == RouteClass::Network && !real.crosses_network) continue;
      if (is_direct(machine, from, to, route, real)) routes[from * count + to] = std::move(route);
    }
  }
  return routes;
}

std::size_t host_budget(const Memory& memory, const RuntimeOptions& options) {
  if (options.host_memory_bytes) return options.host_memory_bytes;
  return (memory.bytes ? memory.bytes : physical_memory()) / 4 * 3;
}

Realisation emulated_budgets(const Machine& machine, const RuntimeOptions& options, Domain domain) {
  const EmulatedOptions& emulated = *options.emulated;
  Realisation real;
  real.domain = domain;
  if (!*options.p2p) real.are_peers = [](GpuId, GpuId) { return false; };
  real.budget = [&](MemoryId id) {
    const Memory& memory = machine.memories[id.value];
    if (memory.kind != MemoryKind::Gpu) return host_budget(memory, options);
    if (emulated.memory_bytes) return emulated.memory_bytes;
    return memory.bytes ? memory.bytes : physical_memory();
  };
  real.backing = [&](MemoryId id) {
    return host_backing(machine.memories[id.value].kind == MemoryKind::Gpu && emulated.poison);
  };
  return real;
}

Realisation emulated_realisation(const Machine& machine, const RuntimeOptions& options,
                                 Domain domain, Wires& wires, Tracer* tracer) {
  const EmulatedOptions& emulated = *options.emulated;
  Realisation real = emulated_budgets(machine, options, domain);
  real.copy_lane = [&wires, &emulated, tracer](LinkDirection& direction, const std::string& name,
                                               const std::string& lane) {
    EmulatedLane::Setup setup;
    setup.name = name + " " + lane;
    setup.device = name;
    setup.options = &emulated;
    setup.wires = &wires;
    setup.tracer = tracer;
    setup.track = tracer ? tracer->add_track(name, lane, TrackKind::Link) : 0;
    setup.load = direction.load;
    setup.on_copied = [&direction] { direction.mailbox.nudge(); };
    return std::make_unique<EmulatedLane>(std::move(setup));
  };
  return real;
}

namespace {

std::string memory_name(const Realisation& real, std::uint32_t memory) {
  const std::string name = to_string(MemoryId{memory});
  return is_spill(real, memory) ? name + " (spill to " + real.spill->directory + ")" : name;
}

}  // namespace

void add_places(Fabric& fabric, const Machine& machine, const RuntimeOptions& options,
                const Realisation& real) {
  const auto budgets = memory_budgets(options.memory.value_or(""), machine);
  for (std::uint32_t m = 0; m < machine.memories.size(); ++m)
    fabric.memories.push_back(std::make_unique<MemoryPool>(
        memory_name(real, m), budgets[m] ? *budgets[m] : real.budget(MemoryId{m}),
        real.backing(MemoryId{m})));
  if (real.spill) fabric.spill = real.spill->memory.value;
  fabric.program_memory = std::make_unique<MemoryPool>(
      "the program's memory", 0,  // what is freed is not kept
      MemoryPool::Backing{.allocate = [](std::size_t) -> void* { return nullptr; },
                          .free = [](void*, std::size_t) {},
                          .poison = false});
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
  for (const auto& socket : fabric.places)
    if (fabric.spill) fabric.memories[socket->memory]->set_below(*fabric.memories[*fabric.spill]);
  if (real.domain == Domain::Host) return;
  for (std::uint32_t g = 0; g < machine.gpus.size(); ++g)
    add(DeviceKind::Gpu, g, GpuId{g}, machine.gpus[g].memory.value, real.domain);
}

std::vector<std::unique_ptr<LinkActor>> add_links(Fabric& fabric, const Machine& machine,
                                                  const Realisation& real,
                                                  const std::vector<Route>& routes) {
  const auto count = static_cast<std::uint32_t>(machine.memories.size());
  std::set<std::uint32_t> used;
  for (std::uint32_t from = 0; from < count; ++from)
    for (std::uint32_t to = 0; to < count; ++to)
      if (const Route& route = routes[from * count + to]; !route.hops.empty())
        used.insert(owner_of(machine, real, from, to, route).link.value);

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
      LinkDirection& direction = actors[l]->direction(d);
      direction.load = fabric.loads[l * 2 + d].get();
      const bool is_storage = real.storage_lane && ends_at_spill(machine, real, machine.links[l]);
      const auto& make_lane = is_storage ? real.storage_lane : real.copy_lane;
      direction.lane = make_lane(direction, "link" + std::to_string(l), "to " + to_string(to));
    }
  }
  return actors;
}

void add_paths(Fabric& fabric, const Machine& machine, const Realisation& real,
               const std::vector<Route>& routes,
               const std::vector<std::unique_ptr<LinkActor>>& links) {
  const auto count = static_cast<std::uint32_t>(machine.memories.size());
  auto segment = [&](std::uint32_t from, std::uint32_t to) {
    const Route& route = routes[from * count + to];
    const Hop& owner = owner_of(machine, real, from, to, route);
    const std::uint32_t direction = owner.forward ? 0 : 1;
    Segment made;
    made.owner = &links[owner.link.value]->direction(direction).mailbox;
    const bool is_from_gpu = is_gpu_memory(machine, from), is_to_gpu = is_gpu_memory(machine, to);
    const bool is_ordered =
        real.orders_host_copies ? is_from_gpu || is_to_gpu : is_from_gpu && is_to_gpu;
    made.domain = is_ordered ? real.domain : Domain::Host;
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
      auto is_end = [&](std::uint32_t m) { return is_gpu_memory(machine, m) || is_spill(real, m); };
      if (!is_end(from) || !is_end(to)) continue;
      const std::uint32_t near = host_memory_near(machine, is_spill(real, from) ? to : from);
      const std::uint32_t far = host_memory_near(machine, is_spill(real, to) ? from : to);
      if (has_way(from, near) && has_way(near, to)) {
        path.segments = {segment(from, near), segment(near, to)};
      } else if (has_way(from, near) && has_way(near, far) && has_way(far, to)) {
        path.segments = {segment(from, near), segment(near, far), segment(far, to)};
      }
    }
}

namespace {

// Large copies to the host are cut into such pieces where another link may help: the last piece
// decides how unequal the links end.
constexpr std::size_t kReliefPiece = 32 << 20;

LinkDirection* direction_of(const std::vector<std::unique_ptr<LinkActor>>& links,
                            const Mailbox* mailbox) {
  for (const auto& link : links)
    for (std::size_t d = 0; link && d < 2; ++d)
      if (&link->direction(d).mailbox == mailbox) return &link->direction(d);
  return nullptr;
}

bool crosses_network(const Machine& machine, const Segment& segment) {
  return std::any_of(segment.hops.begin(), segment.hops.end(), [&](std::uint32_t hop) {
    return machine.links[hop / 2].kind == LinkKind::Network;
  });
}

bool is_reliever(const LinkDirection& relieved, const LinkDirection* reliever) {
  return std::find(relieved.relievers.begin(), relieved.relievers.end(), reliever) !=
         relieved.relievers.end();
}

}  // namespace

void add_reliefs(Fabric& fabric, const Machine& machine,
                 const std::vector<std::unique_ptr<LinkActor>>& links) {
  const auto count = static_cast<std::uint32_t>(machine.memories.size());
  const auto direct = [&](std::uint32_t from, std::uint32_t to) -> const Segment* {
    const auto& segments = fabric.path(from, to).segments;
    return segments.size() == 1 ? &segments.front() : nullptr;
  };
  for (std::uint32_t from = 0; from < count; ++from)
    for (std::uint32_t to = 0; to < count; ++to) {
      const Segment* own = direct(from, to);
      if (!own || !is_gpu_memory(machine, from) || is_gpu_memory(machine, to)) continue;
      if (crosses_network(machine, *own)) continue;
      LinkDirection* relieved = direction_of(links, own->owner);
      for (std::uint32_t via = 0; via < count; ++via) {
        if (via == from || !is_gpu_memory(machine, via)) continue;
        const Segment *over = direct(from, via), *out = direct(via, to);
        if (!over || !out || crosses_network(machine, *over) || out->owner == own->owner ||
            over->owner == own->owner || over->owner == out->owner)
          continue;
        LinkDirection* reliever = direction_of(links, out->owner);
        fabric.paths[from * count + to].piece_bytes = kReliefPiece;
        Relief relief{relieved, via, *over};
        relief.way.from = from;
        relief.way.to = to;
        relief.way.load = own->load;
        relief.way.latency += out->latency;
        relief.way.hops.insert(relief.way.hops.end(), out->hops.begin(), out->hops.end());
        reliever->reliefs.push_back(std::move(relief));
        if (!is_reliever(*relieved, reliever)) relieved->relievers.push_back(reliever);
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

Machine keep_gpus(Machine machine, const std::function<bool(GpuId)>& is_wanted) {
  std::vector<GpuId> new_gpu(machine.gpus.size());  // invalid: gone
  std::vector<Gpu> gpus;
  for (std::uint32_t g = 0; g < machine.gpus.size(); ++g) {
    if (!is_wanted(GpuId{g})) continue;
    new_gpu[g].value = static_cast<std::uint32_t>(gpus.size());
    gpus.push_back(machine.gpus[g]);
  }
  if (gpus.size() == machine.gpus.size()) return machine;
  auto is_gone_memory = [&](std::uint32_t m) {
    return is_gpu_memory(machine, m) && !new_gpu[machine.memories[m].gpu.value].is_valid();
  };
  auto is_gone = [&](const Node& node) {
    return (node.kind == NodeKind::Gpu && !new_gpu[node.index].is_valid()) ||
           (node.kind == NodeKind::Memory && is_gone_memory(node.index));
  };
  std::vector<std::uint32_t> new_memory(machine.memories.size());
  std::vector<Memory> memories;
  for (std::uint32_t m = 0; m < machine.memories.size(); ++m) {
    new_memory[m] = static_cast<std::uint32_t>(memories.size());
    if (!is_gone_memory(m)) memories.push_back(machine.memories[m]);
  }
  std::erase_if(machine.links,
                [&](const Link& link) { return is_gone(link.a) || is_gone(link.b); });
  auto renumber = [&](MemoryId& id) {
    if (id.is_valid()) id.value = new_memory[id.value];
  };
  for (Link& link : machine.links)
    for (Node* node : {&link.a, &link.b}) {
      if (node->kind == NodeKind::Memory) node->index = new_memory[node->index];
      if (node->kind == NodeKind::Gpu) node->index = new_gpu[node->index].value;
    }
  for (Socket& socket : machine.sockets) {
    std::erase_if(socket.memories, [&](MemoryId id) { return is_gone(Node(id)); });
    for (MemoryId& id : socket.memories) renumber(id);
  }
  for (Hub& hub : machine.hubs)
    for (MemoryId& id : hub.near) renumber(id);
  for (Nic& nic : machine.nics)
    for (MemoryId& id : nic.near) renumber(id);
  for (Disk& disk : machine.disks) renumber(disk.memory);
  for (Memory& memory : memories)
    if (memory.gpu.is_valid()) memory.gpu = new_gpu[memory.gpu.value];
  for (Gpu& gpu : gpus) {
    renumber(gpu.memory);
    for (MemoryId& id : gpu.near) renumber(id);
    std::vector<GpuId> shares;
    for (GpuId other : gpu.shares_with)
      if (new_gpu[other.value].is_valid()) shares.push_back(new_gpu[other.value]);
    gpu.shares_with = std::move(shares);
  }
  machine.memories = std::move(memories);
  machine.gpus = std::move(gpus);
  return machine;
}

Machine with_emulated_gpus(Machine machine, std::uint32_t count) {
  machine = keep_gpus(std::move(machine), [](GpuId) { return false; });
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
