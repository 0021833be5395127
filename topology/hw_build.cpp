#include "topology/hw_build.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "topology/make_link.hpp"
#include "topology/names.hpp"
#include "topology/reach.hpp"

namespace weft {

std::uint32_t HwBuild::locality(std::uint32_t object) const {
  const HwType type = tree.objects[object].type;
  if (type == HwType::Bridge || type == HwType::Pci || type == HwType::OsDevice)
    object = tree.host_ancestor(object);
  while (object != 0 && tree.objects[object].pu_begin == tree.objects[object].pu_end)
    object = tree.objects[object].parent;
  return object;
}

std::vector<std::uint32_t> HwBuild::places_near(std::uint32_t object) {
  // A package without usable hardware threads on the way up is the place.
  std::optional<std::uint32_t> package;
  for (std::uint32_t o = object;; o = tree.objects[o].parent) {
    if (tree.objects[o].type == HwType::Package) package = o;
    if (o == 0 || package) break;
  }
  if (package && tree.objects[*package].pu_begin == tree.objects[*package].pu_end) {
    const auto known = place_of.find(*package);
    if (known != place_of.end()) return {known->second};
    Hub hub;
    hub.kind = HubKind::Package;
    hub.name = tree.objects[*package].info("CPUModel");
    hub.host = tree.objects[*package].host;
    const HubId id{static_cast<std::uint32_t>(machine.hubs.size())};
    machine.hubs.push_back(std::move(hub));
    const auto place = static_cast<std::uint32_t>(places.size());
    places.push_back(id);
    hosts.push_back(tree.objects[*package].host);
    place_of[*package] = place;
    node_of[*package] = id;
    if (tree.needs_pus)
      warn("package_without_cores",
           to_string(Node(id)) +
               " is a package with memory or devices and no hardware thread "
               "that may be used");
    return {place};
  }
  const HwObject& local = tree.objects[locality(object)];
  std::vector<std::uint32_t> near(place_of_pu.begin() + local.pu_begin,
                                  place_of_pu.begin() + local.pu_end);
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  return near;
}

std::vector<MemoryId> HwBuild::memories_near(std::uint32_t object) const {
  const std::uint32_t at = locality(object);
  const HwObject& local = tree.objects[at];
  std::vector<MemoryId> inside, around;
  std::uint32_t smallest = 0;
  for (std::uint32_t i = 0; i < local_object.size(); ++i) {
    const Memory& memory = machine.memories[i];
    if (memory.kind == MemoryKind::Gpu || memory.cpus.empty()) continue;
    const HwObject& other = tree.objects[local_object[i]];
    if (other.pu_begin >= local.pu_begin && other.pu_end <= local.pu_end) inside.push_back({i});
    if (other.pu_begin > local.pu_begin || other.pu_end < local.pu_end) continue;
    const std::uint32_t size = other.pu_end - other.pu_begin;
    if (around.empty() || size < smallest) around.clear(), smallest = size;
    if (size == smallest) around.push_back({i});
  }
  if (at == 0 && machine.sockets.size() > 1 && inside.size() > 1) return {};
  return inside.empty() ? around : inside;
}

LinkId HwBuild::add_link(LinkKind kind, Node a, Node b, double rate,
                         std::chrono::nanoseconds latency, Provenance provenance) {
  Link link = make_link(kind, a, b, rate, latency);
  link.provenance = provenance;
  machine.links.push_back(link);
  return LinkId{static_cast<std::uint32_t>(machine.links.size() - 1)};
}

std::size_t bytes_of_kib(std::string_view text) {
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  return result.ec != std::errc() || value > kMost ? 0 : value * 1024;
}

void HwBuild::warn(std::string code, std::string text) {
  machine.warnings.push_back({std::move(code), std::move(text)});
}

namespace {

/// Where this is set on one core of a pair, the pair is one of unequal cores: `CoreType` says
/// which, else capacity or top frequency. A few percent more clock do not make another kind of
/// core.
constexpr double kSameKind = 0.85;

/// Relative speed of each hardware thread as the source states it; empty if it states none.
std::map<std::uint32_t, double> speeds(const HwTree& tree) {
  std::map<std::uint32_t, double> speed;
  for (const HwCpuKind& kind : tree.cpu_kinds) {
    double value = 0;
    const auto take = [&](std::string_view key, double scale) {
      for (const auto& [name, text] : kind.infos)
        if (name == key) value = scale * std::strtod(text.c_str(), nullptr);
    };
    take("FrequencyMaxMHz", 1);
    take("LinuxCapacity", 1);
    for (const auto& [name, text] : kind.infos)
      if (name == "CoreType") value = text == "IntelCore" ? 2 : 1;
    if (!(value > 0)) return {};
    for (const std::uint32_t cpu : kind.cpus) speed[cpu] = value;
  }
  return speed;
}

void set_efficiencies(HwBuild& build) {
  std::map<std::uint32_t, double> speed = speeds(build.tree);
  if (speed.empty()) return;
  // Low-power cores of recent Intel laptops differ from their like only by lying outside the L3.
  std::map<std::uint32_t, bool> has_l3;
  bool any_l3 = false;
  for (const std::uint32_t pu : build.tree.pus)
    for (std::uint32_t o = pu; o != 0; o = build.tree.objects[o].parent) {
      const HwObject& object = build.tree.objects[o];
      if (object.type == HwType::Cache && object.cache_depth == 3)
        any_l3 = has_l3[static_cast<std::uint32_t>(build.tree.objects[pu].os_index)] = true;
    }
  std::vector<double> values;
  const auto value_of = [&](const Core& core) {
    const auto found = speed.find(core.pus.front());
    if (found == speed.end()) return 0.0;
    return any_l3 && !has_l3[core.pus.front()] ? found->second / 2 : found->second;
  };
  for (const Socket& socket : build.machine.sockets)
    for (const Core& core : socket.cores) values.push_back(value_of(core));
  std::sort(values.begin(), values.end());
  std::vector<double> steps;  // the slowest of each kind
  for (const double value : values)
    if (steps.empty() || steps.back() < kSameKind * value) steps.push_back(value);
  if (steps.size() < 2) return;
  for (Socket& socket : build.machine.sockets)
    for (Core& core : socket.cores)
      core.efficiency = static_cast<std::int32_t>(
          std::upper_bound(steps.begin(), steps.end(), value_of(core)) - steps.begin() - 1);
}

/// Cores of the hardware threads `pus`, by their place in `HwTree::pus`.
void fill_socket(HwBuild& build, Socket& socket, const std::vector<std::uint32_t>& pus) {
  const HwTree& tree = build.tree;
  std::map<std::uint32_t, Core> cores;  // by the object that stands for the core
  for (const std::uint32_t p : pus) {
    const std::uint32_t pu = tree.pus[p];
    const auto cpu = static_cast<std::uint32_t>(tree.objects[pu].os_index);
    socket.cpus.push_back(cpu);
    cores[tree.above(pu, HwType::Core).value_or(pu)].pus.push_back(cpu);
  }
  std::sort(socket.cpus.begin(), socket.cpus.end());
  for (auto& [object, core] : cores) {
    std::sort(core.pus.begin(), core.pus.end());
    socket.cores.push_back(std::move(core));
  }
}

/// Each place's caches: those that some of its hardware threads lie below.
void fill_caches(HwBuild& build) {
  using Key = std::pair<std::uint32_t, std::uint64_t>;
  std::vector<std::map<Key, std::uint32_t>> caches(build.places.size());
  for (const HwObject& object : build.tree.objects) {
    if (object.type != HwType::Cache) continue;
    const auto first = build.place_of_pu.begin();
    std::vector<std::uint32_t> places(first + object.pu_begin, first + object.pu_end);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (const std::uint32_t place : places) ++caches[place][{object.cache_depth, object.bytes}];
  }
  for (std::size_t place = 0; place < caches.size(); ++place)
    for (const auto& [key, count] : caches[place])
      build.machine.sockets[place].caches.push_back({key.first, key.second, count});
}

}  // namespace

void add_sockets(HwBuild& build) {
  const HwTree& tree = build.tree;
  constexpr std::uint32_t kNowhere = 0xffffffffu;
  build.place_of_pu.assign(tree.pus.size(), kNowhere);
  for (std::uint32_t i = 0; i < tree.objects.size(); ++i) {
    const HwObject& object = tree.objects[i];
    if (object.type != HwType::Package || object.pu_begin == object.pu_end) continue;
    const auto place = static_cast<std::uint32_t>(build.places.size());
    bool any = false;
    for (std::uint32_t p = object.pu_begin; p < object.pu_end; ++p)
      if (build.place_of_pu[p] == kNowhere) build.place_of_pu[p] = place, any = true;
    if (!any) continue;  // a package inside a package
    Socket socket;
    socket.model = object.info("CPUModel");
    while (!socket.model.empty() && socket.model.back() == ' ') socket.model.pop_back();
    const SocketId id{static_cast<std::uint32_t>(build.machine.sockets.size())};
    build.machine.sockets.push_back(std::move(socket));
    build.places.push_back(id);
    build.hosts.push_back(object.host);
    build.place_of[i] = place;
    build.node_of[i] = id;
  }
  const auto outside = static_cast<std::uint32_t>(
      std::count(build.place_of_pu.begin(), build.place_of_pu.end(), kNowhere));
  if (outside > 0) {
    const auto place = static_cast<std::uint32_t>(build.places.size());
    std::replace(build.place_of_pu.begin(), build.place_of_pu.end(), kNowhere, place);
    const SocketId id{static_cast<std::uint32_t>(build.machine.sockets.size())};
    build.machine.sockets.emplace_back();
    build.places.push_back(id);
    build.hosts.push_back(0);
    build.warn("cores_outside_package", std::to_string(outside) +
                                            " hardware threads belong to no package; they form " +
                                            to_string(Node(id)));
  }
  std::vector<std::vector<std::uint32_t>> pus(build.places.size());
  for (std::uint32_t p = 0; p < tree.pus.size(); ++p) pus[build.place_of_pu[p]].push_back(p);
  for (std::uint32_t place = 0; place < build.places.size(); ++place)
    fill_socket(build, build.machine.sockets[place], pus[place]);
  fill_caches(build);
  set_efficiencies(build);
}

namespace {

/// Names come from files: nothing in them may upset a terminal or a JSON writer.
void make_printable(Machine& machine) {
  const auto clean = [](std::string& text) { text = printable(std::move(text)); };
  clean(machine.source);
  for (Socket& socket : machine.sockets) clean(socket.model);
  for (Gpu& gpu : machine.gpus) clean(gpu.vendor), clean(gpu.model), clean(gpu.uuid);
  for (Hub& hub : machine.hubs) clean(hub.name);
  for (Nic& nic : machine.nics) clean(nic.name);
  for (Disk& disk : machine.disks) clean(disk.name);
  for (Warning& warning : machine.warnings) clean(warning.code), clean(warning.text);
}

}  // namespace

Machine build_machine(const HwTree& tree, const std::string& source) {
  if (tree.pus.empty() && tree.needs_pus)
    throw TopologyError(source + ": no hardware thread that may be used; expected at least one PU");
  HwBuild build(tree);
  build.machine.source = source;
  build.machine.warnings = tree.warnings;
  add_sockets(build);
  add_memories(build);
  add_devices(build);
  add_socket_links(build);
  add_fabric(build);
  warn_unreachable(build.machine);
  make_printable(build.machine);
  return std::move(build.machine);
}

}  // namespace weft
