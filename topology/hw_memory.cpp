#include <algorithm>
#include <map>
#include <unordered_map>

#include "topology/hw_build.hpp"
#include "topology/quantity.hpp"
#include "topology/rates.hpp"

namespace weft {
namespace {

// The largest machines with one memory had 256 sockets (SGI UV 3000).
constexpr std::size_t kMostPlaces = 256;

/// True if some package's model name contains `word`.
bool has_processor(const HwTree& tree, std::string_view word) {
  return std::any_of(tree.objects.begin(), tree.objects.end(), [&](const HwObject& object) {
    return object.type == HwType::Package && contains(object.info("CPUModel"), word);
  });
}

/// Knights Landing and Mill: family 6, model 87 and 133, whatever early parts call themselves.
bool has_xeon_phi(const HwTree& tree) {
  return has_processor(tree, "Xeon Phi") ||
         std::any_of(tree.objects.begin(), tree.objects.end(), [](const HwObject& object) {
           const std::string_view model = object.info("CPUModelNumber");
           return object.type == HwType::Package && object.info("CPUFamilyNumber") == "6" &&
                  (model == "87" || model == "133");
         });
}

MemoryKind kind_of(const HwTree& tree, const HwObject& node) {
  const std::string& subtype = node.subtype;
  if (contains(subtype, "GPU")) return MemoryKind::Gpu;
  if (contains(subtype, "CXL") || !node.info("CXLDevice").empty() ||
      contains(node.info("DAXParent"), "cxl"))
    return MemoryKind::Cxl;
  if (subtype == "HBM" || subtype == "MCDRAM" || subtype == "SPM") return MemoryKind::Hbm;
  if (subtype == "NVM" || node.info("DAXType") == "NVM") return MemoryKind::Pmem;
  if (subtype == "DRAM") return MemoryKind::Dram;
  if (node.info("DAXType") == "SPM") return MemoryKind::Hbm;
  if (!node.info("DAXDevice").empty()) return MemoryKind::Pmem;
  if (!node.info("PCIBusID").empty()) return MemoryKind::Gpu;
  // Older exports say nothing: tell by the processors that have such nodes.
  if (node.has_no_cpus && has_xeon_phi(tree)) return MemoryKind::Hbm;
  if (node.has_no_cpus && node.os_index >= 64 && has_processor(tree, "POWER9"))
    return MemoryKind::Gpu;
  return MemoryKind::Dram;
}

double assumed_rate(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::Hbm:
      return rates::kHbmBus;
    case MemoryKind::Pmem:
    case MemoryKind::Cxl:
      return rates::kSlowMemoryBus;
    default:
      return rates::kMemoryBus;
  }
}

/// Adds one host memory and its links. `object` is the NUMA node, or the machine where a memory is
/// made up because there is none.
void add_memory(HwBuild& build, std::uint32_t object, MemoryKind kind, std::size_t bytes) {
  const HwTree& tree = build.tree;
  const HwObject& node = tree.objects[object];
  const MemoryId id{static_cast<std::uint32_t>(build.machine.memories.size())};
  Memory memory;
  memory.kind = kind;
  memory.bytes = bytes;
  if (node.type == HwType::Numa) memory.os_index = node.os_index;
  const std::uint32_t local = build.locality(object);
  std::vector<std::uint32_t> places;
  if (kind != MemoryKind::Gpu) {
    places = build.places_near(object);
    // Interleaved or far memory at the top of a machine of several sockets is near none of them.
    const bool is_everywhere = node.has_no_cpus && local == 0 && places.size() > 1;
    if (!is_everywhere) {
      memory.cpus = tree.cpus_of(local);
      for (const std::uint32_t place : places)
        if (build.places[place].kind == NodeKind::Socket)
          memory.near.push_back(SocketId{build.places[place].index});
        else
          memory.cpus.clear();
    }
  }
  build.memory_of[object] = id;
  build.node_of[object] = id;
  build.local_object.push_back(local);
  build.machine.memories.push_back(std::move(memory));

  double read = assumed_rate(kind), write = read;
  Provenance provenance = Provenance::Assumed;
  for (const HwBandwidth& stated : tree.bandwidths)
    if (stated.numa == object && node.type == HwType::Numa) {
      read = stated.read;
      write = stated.write;
      provenance = Provenance::Reported;
    }
  for (const std::uint32_t place : places) {
    const LinkId link = build.add_link(LinkKind::Bus, id, build.places[place], read,
                                       rates::kBusLatency, provenance);
    build.machine.links[link.value].bytes_per_second[1] = write;
  }
}

}  // namespace

void add_memories(HwBuild& build) {
  const HwTree& tree = build.tree;
  for (std::uint32_t i = 0; i < tree.objects.size(); ++i)
    if (tree.objects[i].type == HwType::Numa)
      add_memory(build, i, kind_of(tree, tree.objects[i]), tree.objects[i].bytes);
  const bool has_host_memory =
      std::any_of(build.machine.memories.begin(), build.machine.memories.end(),
                  [](const Memory& memory) { return memory.kind != MemoryKind::Gpu; });
  if (!has_host_memory) add_memory(build, 0, MemoryKind::Dram, tree.objects[0].bytes);

  std::vector<std::vector<std::uint32_t>> near(build.machine.sockets.size());
  for (std::uint32_t m = 0; m < build.machine.memories.size(); ++m)
    for (const SocketId socket : build.machine.memories[m].near) near[socket.value].push_back(m);
  for (std::uint32_t s = 0; s < near.size(); ++s) {
    const auto key = [&](std::uint32_t m) {
      const Memory& memory = build.machine.memories[m];
      return std::tuple(memory.near.size(), memory.kind, memory.cpus.size(), m);
    };
    std::sort(near[s].begin(), near[s].end(), [&](auto a, auto b) { return key(a) < key(b); });
    for (const std::uint32_t m : near[s]) build.machine.sockets[s].memories.push_back(MemoryId{m});
  }
}

void add_socket_links(HwBuild& build) {
  // Every two places of a host are joined: what is no machine must not make millions of links.
  std::map<std::uint32_t, std::size_t> count;
  for (const std::uint32_t host : build.hosts)
    if (++count[host] > kMostPlaces)
      throw TopologyError(build.machine.source + ": more than " + std::to_string(kMostPlaces) +
                          " packages or NUMA nodes of one host; expected a machine");
  // Firmware's distance table is relative to local access, which is 10; the smallest distance
  // between memories of two places is that of the places.
  const HwMatrix* slit = nullptr;
  for (const HwMatrix& matrix : build.tree.matrices)
    if (matrix.name == "NUMALatency") slit = &matrix;
  std::unordered_map<std::uint32_t, std::size_t> row;
  if (slit)
    for (std::size_t i = 0; i < slit->objects.size(); ++i) {
      const auto memory = build.memory_of.find(slit->objects[i]);
      if (memory != build.memory_of.end()) row[memory->second.value] = i;
    }
  const auto memories_at = [&](Node place) {
    return place.kind == NodeKind::Socket ? build.machine.sockets[place.index].memories
                                          : std::vector<MemoryId>{};
  };
  for (std::size_t a = 0; a < build.places.size(); ++a)
    for (std::size_t b = a + 1; b < build.places.size(); ++b) {
      if (build.hosts[a] != build.hosts[b]) continue;
      std::uint64_t distance = 0;
      for (const MemoryId from : memories_at(build.places[a]))
        for (const MemoryId to : memories_at(build.places[b])) {
          if (from == to || !row.count(from.value) || !row.count(to.value)) continue;
          const std::uint64_t d =
              slit->values[row[from.value] * slit->objects.size() + row[to.value]];
          if (d > 10 && d < 255 && (distance == 0 || d < distance)) distance = d;
        }
      auto latency = rates::kSocketLatency;
      if (distance) latency = rates::kBusLatency * static_cast<std::int64_t>(distance - 10) / 10;
      build.add_link(LinkKind::Socket, build.places[a], build.places[b], rates::kSocketLink,
                     latency, Provenance::Assumed);
    }
}

}  // namespace weft
