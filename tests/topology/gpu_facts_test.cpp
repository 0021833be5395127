#include "topology/gpu_facts.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "support/catch.hpp"
#include "topology/corpus.hpp"
#include "topology/discover.hpp"
#include "topology/import.hpp"
#include "topology/machine_check.hpp"
#include "topology/names.hpp"
#include "topology/route.hpp"

using namespace weft;

namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;

PciAddress at(const char* text) {
  return parse_pci_address(text).value();
}

bool warns_of(const Machine& machine, const std::string& code) {
  return std::any_of(machine.warnings.begin(), machine.warnings.end(),
                     [&](const Warning& warning) { return warning.code == code; });
}

std::vector<Link> nvlinks(const Machine& machine) {
  std::vector<Link> found;
  for (const Link& link : machine.links)
    if (link.kind == LinkKind::Nvlink) found.push_back(link);
  return found;
}

GpuFact h200(const char* address, int ordinal) {
  GpuFact fact;
  fact.pci = at(address);
  fact.name = "NVIDIA H200";
  fact.uuid = std::string("GPU-") + address;
  fact.memory_bytes = 140 * kGiB;
  fact.cuda_ordinal = ordinal;
  fact.compute_capability = 90;
  return fact;
}

/// Every GPU that CUDA shows reaches every other.
void connect(GpuFacts& facts, bool has_atomics = true) {
  std::size_t shown = 0;
  for (const GpuFact& gpu : facts.gpus) shown += gpu.cuda_ordinal >= 0;
  for (GpuFact& gpu : facts.gpus)
    if (gpu.cuda_ordinal >= 0) gpu.peers.assign(shown, {true, has_atomics, 0});
}

void add_links(GpuFact& fact, int count, NvlinkRemote remote, std::optional<PciAddress> pci) {
  for (int i = 0; i < count; ++i) fact.nvlinks.push_back({remote, pci, 4, 26.5e9});
}

/// A host with NVIDIA GPUs at the addresses as the PCI bus shows them, without a driver. GPUs are
/// spread over the sockets if `is_placed`; else the bus does not say where they are.
Machine host(const std::vector<const char*>& addresses, bool is_placed = true) {
  Machine machine =
      parse_machine("2 sockets x 4 cores, " + std::to_string(addresses.size()) + " gpus");
  for (std::uint32_t m = 0; m < machine.memories.size(); ++m)
    if (machine.memories[m].kind != MemoryKind::Gpu) machine.memories[m].os_index = m;
  for (std::size_t g = 0; g < addresses.size(); ++g) {
    Gpu& gpu = machine.gpus[g];
    gpu.vendor = "NVIDIA";
    gpu.model = "H200 SXM 141GB";
    gpu.pci = at(addresses[g]);
    gpu.unused_reason = "no NVIDIA driver is loaded";
    if (!is_placed) gpu.near.clear();
  }
  return machine;
}

}  // namespace

TEST_CASE("two H200 behind an NVSwitch that the virtual machine hides", "[gpu_facts]") {
  GpuFacts facts;
  for (const char* address : {"0000:05:00.0", "0000:06:00.0"}) {
    facts.gpus.push_back(h200(address, static_cast<int>(facts.gpus.size())));
    facts.gpus.back().numa_node = facts.gpus.size() == 1 ? 0 : 1;
    add_links(facts.gpus.back(), 18, NvlinkRemote::Switch, std::nullopt);
  }
  connect(facts);
  const Machine bare = host({"0000:05:00.0", "0000:06:00.0"}, false);
  const Machine machine = with_gpu_facts(bare, facts);
  REQUIRE(machine.gpus.size() == 2);
  for (const Gpu& gpu : machine.gpus) {
    CHECK(gpu.unused_reason.empty());
    CHECK(gpu.model == "NVIDIA H200");
    CHECK(machine.memories[gpu.memory.value].bytes == 140 * kGiB);
  }
  CHECK(machine.gpus[0].near == std::vector<MemoryId>{{0}});
  CHECK(machine.gpus[1].near == std::vector<MemoryId>{{1}});
  const std::vector<Link> links = nvlinks(machine);
  REQUIRE(links.size() == 2);
  CHECK(links[0].width == 18);
  CHECK(links[0].generation == 4);
  CHECK(links[0].bytes_per_second[0] == 450e9);
  CHECK(links[0].provenance == Provenance::Reported);
  CHECK(links[0].b == links[1].b);
  CHECK(machine.hubs[links[0].b.index].kind == HubKind::NvSwitch);
  CHECK(find_route(machine, GpuId{0}, GpuId{1}).bytes_per_second == 450e9);
  CHECK(cuda_ordinals(machine, facts) == std::vector<int>{0, 1});
  CHECK(machine.warnings.size() == bare.warnings.size());
}

TEST_CASE("eight GPUs and four switches that hwloc sees on the PCI bus become one hub",
          "[gpu_facts]") {
  std::vector<const char*> addresses = {"0000:18:00.0", "0000:2a:00.0", "0000:3a:00.0",
                                        "0000:5d:00.0", "0000:9a:00.0", "0000:ab:00.0",
                                        "0000:ba:00.0", "0000:db:00.0"};
  Machine bare = host(addresses);
  Hub hub;
  hub.kind = HubKind::NvSwitch;
  hub.name = "4 NVSwitches 0000:07:00.0, 0000:08:00.0, 0000:09:00.0, 0000:0a:00.0";
  bare.hubs.push_back(hub);
  const auto hubs = static_cast<std::uint32_t>(bare.hubs.size());
  GpuFacts facts;
  for (std::size_t g = 0; g < addresses.size(); ++g) {
    facts.gpus.push_back(h200(addresses[g], static_cast<int>(g)));
    const int counts[] = {4, 4, 5, 5};
    const char* switches[] = {"0000:07:00.0", "0000:08:00.0", "0000:09:00.0", "0000:0a:00.0"};
    for (int s = 0; s < 4; ++s)
      add_links(facts.gpus.back(), counts[s], NvlinkRemote::Switch, at(switches[s]));
  }
  connect(facts);
  const Machine machine = with_gpu_facts(bare, facts);
  CHECK(machine.hubs.size() == hubs);
  REQUIRE(nvlinks(machine).size() == 8);
  for (const Link& link : nvlinks(machine)) {
    CHECK(link.b == Node(HubId{hubs - 1}));
    CHECK(link.width == 18);
  }
}

TEST_CASE("links straight from GPU to GPU are counted once, from both ends", "[gpu_facts]") {
  GpuFacts facts;
  facts.gpus = {h200("0000:05:00.0", 0), h200("0000:06:00.0", 1)};
  add_links(facts.gpus[0], 6, NvlinkRemote::Gpu, at("0000:06:00.0"));
  add_links(facts.gpus[1], 6, NvlinkRemote::Gpu, at("0000:05:00.0"));
  SECTION("and are used where peers have access") {
    connect(facts);
    const auto links = nvlinks(with_gpu_facts(host({"0000:05:00.0", "0000:06:00.0"}), facts));
    REQUIRE(links.size() == 1);
    CHECK(links[0].width == 6);
    CHECK(links[0].bytes_per_second[1] == 150e9);
  }
  SECTION("and are left out where CUDA says that peers have no access") {
    for (GpuFact& gpu : facts.gpus) gpu.peers.assign(2, {});
    const Machine machine = with_gpu_facts(host({"0000:05:00.0", "0000:06:00.0"}), facts);
    CHECK(nvlinks(machine).empty());
    CHECK(warns_of(machine, "nvlink_without_peer_access"));
  }
  SECTION("and replace those hwloc has told") {
    connect(facts);
    Machine bare = host({"0000:05:00.0", "0000:06:00.0"});
    Link old;
    old.kind = LinkKind::Nvlink;
    old.a = GpuId{0};
    old.b = GpuId{1};
    old.bytes_per_second[0] = old.bytes_per_second[1] = 1e9;
    bare.links.push_back(old);
    CHECK(nvlinks(with_gpu_facts(bare, facts)).size() == 1);
    CHECK(nvlinks(with_gpu_facts(bare, facts))[0].width == 6);
  }
  SECTION("and links to GPUs outside the container are told, not invented") {
    connect(facts);
    add_links(facts.gpus[0], 2, NvlinkRemote::Gpu, at("0000:99:00.0"));
    const Machine machine = with_gpu_facts(host({"0000:05:00.0", "0000:06:00.0"}), facts);
    CHECK(nvlinks(machine).size() == 1);
    CHECK(warns_of(machine, "nvlinks_to_hidden_gpus"));
  }
}

TEST_CASE("a switch whose GPUs do not reach each other joins nothing", "[gpu_facts]") {
  GpuFacts facts;
  facts.gpus = {h200("0000:05:00.0", 0), h200("0000:06:00.0", 1)};
  for (GpuFact& gpu : facts.gpus) {
    add_links(gpu, 18, NvlinkRemote::Switch, std::nullopt);
    gpu.peers.assign(2, {});
  }
  const Machine machine = with_gpu_facts(host({"0000:05:00.0", "0000:06:00.0"}), facts);
  CHECK(nvlinks(machine).empty());
  CHECK(warns_of(machine, "nvlink_without_peer_access"));
}

TEST_CASE("CUDA's order is not the PCI order", "[gpu_facts]") {
  const std::vector<const char*> addresses = {"0000:05:00.0", "0000:06:00.0", "0000:07:00.0"};
  GpuFacts facts;
  facts.gpus = {h200("0000:07:00.0", 0), h200("0000:05:00.0", 1), h200("0000:06:00.0", 2)};
  facts.gpus[0].memory_bytes = 7 * kGiB;
  const Machine machine = with_gpu_facts(host(addresses), facts);
  for (std::size_t g = 0; g < 3; ++g) CHECK(to_string(*machine.gpus[g].pci) == addresses[g]);
  CHECK(machine.memories[machine.gpus[2].memory.value].bytes == 7 * kGiB);
  CHECK(cuda_ordinals(machine, facts) == std::vector<int>{1, 2, 0});
}

TEST_CASE("a GPU that CUDA_VISIBLE_DEVICES hides says so", "[gpu_facts]") {
  const Machine bare = host({"0000:05:00.0", "0000:06:00.0"});
  GpuFacts facts;
  facts.gpus = {h200("0000:06:00.0", 0)};
  facts.visible_devices = "1";
  SECTION("with NVML, which shows it") {
    add_nvml_facts(facts, {h200("0000:05:00.0", -1), h200("0000:06:00.0", -1)});
    const Machine machine = with_gpu_facts(bare, facts);
    CHECK(machine.gpus[0].unused_reason == "hidden by CUDA_VISIBLE_DEVICES=\"1\"");
    CHECK(machine.gpus[1].unused_reason.empty());
    CHECK(cuda_ordinals(machine, facts) == std::vector<int>{-1, 0});
    CHECK_FALSE(warns_of(machine, "visible_devices_bad"));
  }
  SECTION("without NVML") {
    facts.nvml_problem = "libnvidia-ml.so.1 cannot be loaded";
    const Machine machine = with_gpu_facts(bare, facts);
    CHECK_THAT(machine.gpus[0].unused_reason, contains_text("CUDA_VISIBLE_DEVICES is \"1\""));
    CHECK(machine.gpus[1].unused_reason.empty());
    CHECK(warns_of(machine, "nvml_missing"));
  }
  SECTION("with all of them hidden") {
    facts.gpus.clear();
    facts.visible_devices = "";
    facts.cuda_problem = "CUDA finds no GPU";
    add_nvml_facts(facts, {h200("0000:05:00.0", -1), h200("0000:06:00.0", -1)});
    const Machine machine = with_gpu_facts(bare, facts);
    for (const Gpu& gpu : machine.gpus)
      CHECK(gpu.unused_reason == "hidden by CUDA_VISIBLE_DEVICES=\"\"");
    CHECK(warns_of(machine, "cuda_unavailable"));
    CHECK(cuda_ordinals(machine, facts) == std::vector<int>{-1, -1});
  }
}

TEST_CASE("an entry of CUDA_VISIBLE_DEVICES that names nothing is pointed at", "[gpu_facts]") {
  GpuFacts facts;
  add_nvml_facts(facts, {h200("0000:05:00.0", -1), h200("0000:06:00.0", -1)});
  const auto bad = [&](const char* text) {
    facts.visible_devices = text;
    return bad_visible_device(facts).value_or("");
  };
  CHECK(bad("0,1").empty());
  CHECK(bad("1, 0").empty());
  CHECK(bad("").empty());
  CHECK(bad("-1").empty());
  CHECK(bad("GPU-0000:06").empty());
  CHECK(bad("0,2,1") == "2");
  CHECK(bad("cuda0") == "cuda0");
  CHECK(bad("GPU-99") == "GPU-99");
  CHECK(bad("MIG-1") == "MIG-1");
  CHECK(bad("99999999999999999999999") == "99999999999999999999999");
  facts.nvml_problem = "none";
  CHECK(bad("7").empty());
}

TEST_CASE("a prohibited GPU, one too old and one the driver does not show have reasons",
          "[gpu_facts]") {
  GpuFacts facts;
  facts.gpus = {h200("0000:05:00.0", 0), h200("0000:06:00.0", 1)};
  facts.gpus[0].is_prohibited = true;
  facts.gpus[1].compute_capability = 80;
  facts.lowest_capability = 90;
  const Machine machine =
      with_gpu_facts(host({"0000:05:00.0", "0000:06:00.0", "0000:07:00.0"}), facts);
  CHECK_THAT(machine.gpus[0].unused_reason, contains_text("prohibited"));
  CHECK_THAT(machine.gpus[1].unused_reason, contains_text("CMAKE_CUDA_ARCHITECTURES=80"));
  CHECK_THAT(machine.gpus[2].unused_reason, contains_text("driver does not show it"));
  CHECK(cuda_ordinals(machine, facts) == std::vector<int>{-1, -1, -1});
}

TEST_CASE("without a driver every NVIDIA GPU has the driver's reason", "[gpu_facts]") {
  GpuFacts facts;
  facts.cuda_problem = "the NVIDIA driver is not loaded";
  facts.nvml_problem = "no library";
  Machine bare = host({"0000:05:00.0", "0000:06:00.0"});
  bare.gpus[1].vendor = "AMD";
  bare.gpus[1].unused_reason = "weft has no engine for AMD GPUs";
  Machine machine = with_gpu_facts(bare, facts);
  CHECK(machine.gpus[0].unused_reason == facts.cuda_problem);
  CHECK_THAT(print_tree(machine), contains_text("0000:05:00.0, not used: " + facts.cuda_problem));
  CHECK(machine.gpus[1].unused_reason == bare.gpus[1].unused_reason);
  CHECK(warns_of(machine, "cuda_unavailable"));
  CHECK_FALSE(warns_of(machine, "nvml_missing"));
  // Apart from that nothing has changed.
  machine.warnings = bare.warnings;
  machine.gpus[0].unused_reason = bare.gpus[0].unused_reason;
  CHECK(machine == bare);
}

TEST_CASE("MIG instances take the place of their GPU and share its function", "[gpu_facts]") {
  const Machine bare = host({"0000:05:00.0", "0000:06:00.0"});
  GpuFact split = h200("0000:05:00.0", -1);
  split.is_mig_enabled = true;
  const auto instance = [&](const char* uuid) {
    GpuFact fact = h200("0000:05:00.0", -1);
    fact.name = "NVIDIA H200 MIG 1g.18gb";
    fact.uuid = uuid;
    fact.mig_parent = split.uuid;
    fact.memory_bytes = 16 * kGiB;
    return fact;
  };
  const std::vector<GpuFact> nvml = {split, instance("MIG-a"), instance("MIG-b"),
                                     h200("0000:06:00.0", -1)};
  GpuFacts facts;
  SECTION("CUDA shows one by its own UUID") {
    GpuFact shown = h200("0000:05:00.0", 0);
    shown.uuid = "GPU-b";  // the same number as MIG-b
    facts.gpus = {shown};
    facts.visible_devices = "MIG-b";
    add_nvml_facts(facts, nvml);
    CHECK(facts.gpus.size() == 4);
    const Machine machine = with_gpu_facts(bare, facts);
    REQUIRE(machine.gpus.size() == 3);
    CHECK(machine.gpus[0].pci == machine.gpus[1].pci);
    CHECK(machine.gpus[2].pci == at("0000:06:00.0"));
    CHECK(machine.gpus[0].shares_with == std::vector<GpuId>{{1}});
    CHECK(machine.gpus[1].shares_with == std::vector<GpuId>{{0}});
    CHECK(machine.gpus[0].memory != machine.gpus[1].memory);
    for (std::uint32_t g = 0; g < 3; ++g)
      CHECK(machine.memories[machine.gpus[g].memory.value].gpu == GpuId{g});
    const std::uint32_t b = machine.gpus[0].uuid == "MIG-b" ? 0 : 1;
    CHECK(machine.gpus[b].unused_reason.empty());
    CHECK_THAT(machine.gpus[1 - b].unused_reason, contains_text("CUDA_VISIBLE_DEVICES=MIG-a"));
    CHECK_THAT(machine.gpus[2].unused_reason, contains_text("hidden by"));
    CHECK(cuda_ordinals(machine, facts)[b] == 0);
    CHECK_FALSE(bad_visible_device(facts));
    CHECK(find_route(machine, MemoryId{0}, GpuId{1}).route_class != RouteClass::None);
  }
  SECTION("no instance has been made") {
    add_nvml_facts(facts, {split, h200("0000:06:00.0", -1)});
    const Machine machine = with_gpu_facts(bare, facts);
    REQUIRE(machine.gpus.size() == 2);
    CHECK_THAT(machine.gpus[0].unused_reason, contains_text("MIG mode is on"));
  }
}

TEST_CASE("addresses with domains of 16 and 32 bits mean the same function", "[gpu_facts]") {
  CHECK(is_same_function(at("00000000:3B:00.0"), at("0000:3b:00.0")));
  CHECK(is_same_function(at("10001:00:00.0"), at("0001:00:00.0")));
  CHECK_FALSE(is_same_function(at("0001:00:00.0"), at("0002:00:00.0")));
  CHECK_FALSE(is_same_function(at("10001:00:00.0"), at("20001:00:00.0")));
  CHECK_FALSE(is_same_function(at("0000:3b:00.0"), at("0000:3b:00.1")));
  GpuFacts facts;
  facts.gpus = {h200("20001:00:00.0", 0), h200("10001:00:00.0", 1)};
  const Machine machine = with_gpu_facts(host({"10001:00:00.0", "20001:00:00.0"}), facts);
  CHECK(machine.gpus.size() == 2);
  CHECK(cuda_ordinals(machine, facts) == std::vector<int>{1, 0});
  facts.gpus = {h200("10001:00:00.0", 0)};
  CHECK(with_gpu_facts(host({"0001:00:00.0"}), facts).gpus.size() == 1);
}

TEST_CASE("GPUs that hwloc does not see are added in PCI order with a warning", "[gpu_facts]") {
  GpuFacts facts;
  facts.gpus = {h200("0000:09:00.0", 0), h200("0000:03:00.0", 1), h200("0000:05:00.0", 2)};
  facts.gpus[1].numa_node = 1;
  add_links(facts.gpus[0], 2, NvlinkRemote::Gpu, at("0000:03:00.0"));
  add_links(facts.gpus[1], 2, NvlinkRemote::Gpu, at("0000:09:00.0"));
  connect(facts);
  const Machine machine = with_gpu_facts(host({"0000:05:00.0"}), facts);
  REQUIRE(machine.gpus.size() == 3);
  CHECK(warns_of(machine, "gpu_not_on_pci"));
  CHECK(machine.gpus[0].pci == at("0000:03:00.0"));
  CHECK(machine.gpus[1].pci == at("0000:05:00.0"));
  CHECK(machine.gpus[0].near == std::vector<MemoryId>{{1}});
  CHECK(machine.gpus[2].near.empty());
  CHECK(cuda_ordinals(machine, facts) == std::vector<int>{1, 2, 0});
  for (std::uint32_t g = 0; g < 3; ++g) {
    CHECK(machine.memories[machine.gpus[g].memory.value].gpu == GpuId{g});
    for (const MemoryId memory : {MemoryId{0}, MemoryId{1}})
      CHECK(find_route(machine, memory, GpuId{g}).route_class != RouteClass::None);
  }
  REQUIRE(nvlinks(machine).size() == 1);
  CHECK(nvlinks(machine)[0].a == Node(GpuId{0}));
  CHECK(nvlinks(machine)[0].b == Node(GpuId{2}));
  CHECK_FALSE(warns_of(machine, "not_connected"));
}

TEST_CASE("where there is one socket, a GPU that hwloc does not see is at it", "[gpu_facts]") {
  GpuFacts facts;
  facts.gpus = {h200("0000:05:00.0", 0)};
  const Machine machine = with_gpu_facts(parse_machine("1 socket x 4 cores"), facts);
  REQUIRE(machine.gpus.size() == 1);
  CHECK(machine.gpus[0].near == std::vector<MemoryId>{{0}});
  CHECK(find_route(machine, MemoryId{0}, GpuId{0}).route_class != RouteClass::None);
}

TEST_CASE("a host bridge is where the driver says that all its GPUs are", "[gpu_facts]") {
  Machine bare = host({"0000:05:00.0", "0000:06:00.0"}, false);
  // Both hang from one bridge that is joined to both sockets: a virtual machine without locality.
  std::optional<Node> bridge;
  for (Link& link : bare.links)
    if (link.kind == LinkKind::Pcie) {
      if (!bridge) bridge = link.a;
      link.a = *bridge;
    }
  REQUIRE((bridge && bridge->kind == NodeKind::Hub));
  std::erase_if(bare.links, [&](const Link& link) { return link.b == *bridge; });
  bare.hubs[bridge->index].near.clear();
  for (const SocketId socket : {SocketId{0}, SocketId{1}}) {
    Link bus;
    bus.kind = LinkKind::Bus;
    bus.a = socket;
    bus.b = *bridge;
    bus.bytes_per_second[0] = bus.bytes_per_second[1] = 100e9;
    bare.links.push_back(bus);
  }
  GpuFacts facts;
  facts.gpus = {h200("0000:05:00.0", 0), h200("0000:06:00.0", 1)};
  const auto buses = [&](const Machine& machine) {
    return std::count_if(machine.links.begin(), machine.links.end(),
                         [&](const Link& link) { return link.b == *bridge; });
  };
  bare.warnings.push_back({"io_locality_unknown", "hub0 and others are joined to all sockets"});
  facts.gpus[0].numa_node = facts.gpus[1].numa_node = 1;
  CHECK(buses(with_gpu_facts(bare, facts)) == 1);
  CHECK_FALSE(warns_of(with_gpu_facts(bare, facts), "io_locality_unknown"));
  facts.gpus[0].numa_node = 0;
  CHECK(buses(with_gpu_facts(bare, facts)) == 2);
  CHECK(warns_of(with_gpu_facts(bare, facts), "io_locality_unknown"));
  facts.gpus[0].numa_node = -1;
  CHECK(buses(with_gpu_facts(bare, facts)) == 2);
}

TEST_CASE("where bus and driver disagree about the NUMA node the bus is kept", "[gpu_facts]") {
  GpuFacts facts;
  facts.gpus = {h200("0000:05:00.0", 0)};
  facts.gpus[0].numa_node = 1;
  const Machine machine = with_gpu_facts(host({"0000:05:00.0"}), facts);
  CHECK(machine.gpus[0].near == std::vector<MemoryId>{{0}});
  CHECK(warns_of(machine, "sources_disagree"));
}

TEST_CASE("without NVML, NVLinks follow from native atomics between peers", "[gpu_facts]") {
  std::vector<const char*> addresses = {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0",
                                        "0000:04:00.0", "0000:05:00.0", "0000:06:00.0",
                                        "0000:07:00.0", "0000:08:00.0"};
  const auto facts_of = [&](std::size_t count, bool has_atomics) {
    GpuFacts facts;
    for (std::size_t g = 0; g < count; ++g)
      facts.gpus.push_back(h200(addresses[g], static_cast<int>(g)));
    connect(facts, has_atomics);
    facts.nvml_problem = "libnvidia-ml.so.1 cannot be loaded";
    return facts;
  };
  SECTION("two GPUs have all links between them") {
    const Machine machine = with_gpu_facts(host({addresses[0], addresses[1]}), facts_of(2, true));
    REQUIRE(nvlinks(machine).size() == 1);
    CHECK(nvlinks(machine)[0].bytes_per_second[0] == 450e9);
    CHECK(nvlinks(machine)[0].provenance == Provenance::Assumed);
    CHECK(warns_of(machine, "nvlinks_assumed"));
  }
  SECTION("eight have a switch") {
    const Machine machine = with_gpu_facts(host(addresses), facts_of(8, true));
    REQUIRE(nvlinks(machine).size() == 8);
    CHECK(nvlinks(machine)[0].b.kind == NodeKind::Hub);
    CHECK(find_route(machine, GpuId{0}, GpuId{7}).bytes_per_second == 450e9);
  }
  SECTION("and from links between GPUs whose other ends a virtual machine hides") {
    GpuFacts facts = facts_of(2, true);
    facts.nvml_problem.clear();
    for (GpuFact& gpu : facts.gpus) add_links(gpu, 18, NvlinkRemote::Gpu, std::nullopt);
    const Machine machine = with_gpu_facts(host({addresses[0], addresses[1]}), facts);
    REQUIRE(nvlinks(machine).size() == 1);
    CHECK(warns_of(machine, "nvlinks_assumed"));
  }
  SECTION("peers over PCIe have none") {
    const Machine machine = with_gpu_facts(host({addresses[0], addresses[1]}), facts_of(2, false));
    CHECK(nvlinks(machine).empty());
    CHECK_FALSE(warns_of(machine, "nvlinks_assumed"));
  }
}

TEST_CASE("links to the processor are added where the machine has none", "[gpu_facts]") {
  const Machine bare = host({"0000:05:00.0", "0000:06:00.0"});
  GpuFacts facts;
  facts.gpus = {h200("0000:05:00.0", 0), h200("0000:06:00.0", 1)};
  facts.gpus[0].has_c2c = true;
  add_links(facts.gpus[1], 3, NvlinkRemote::Cpu, std::nullopt);
  Machine machine = with_gpu_facts(bare, facts);
  for (int again = 0; again < 2; ++again) {
    std::vector<Link> added;
    for (const Link& link : machine.links)
      if (link.kind == LinkKind::C2c || link.kind == LinkKind::Nvlink) added.push_back(link);
    REQUIRE(added.size() == 2);
    CHECK(added[0].kind == LinkKind::C2c);
    CHECK(added[0].a == Node(SocketId{0}));
    CHECK(added[0].b == Node(GpuId{0}));
    CHECK(added[0].provenance == Provenance::Assumed);
    CHECK(added[1].a == Node(SocketId{1}));
    CHECK(added[1].b == Node(GpuId{1}));
    CHECK(added[1].width == 3);
    machine = with_gpu_facts(machine, facts);
  }
}

TEST_CASE("an idle PCIe link gets the generation it works with", "[gpu_facts]") {
  Machine bare = host({"0000:05:00.0"});
  Link* pcie = nullptr;
  for (Link& link : bare.links)
    if (link.kind == LinkKind::Pcie) pcie = &link;
  REQUIRE(pcie);
  pcie->generation = 1;
  pcie->width = 16;
  pcie->provenance = Provenance::Reported;
  pcie->bytes_per_second[0] = pcie->bytes_per_second[1] = 3.2e9;
  GpuFacts facts;
  facts.gpus = {h200("0000:05:00.0", 0)};
  facts.gpus[0].pcie_generation = 1;
  facts.gpus[0].pcie_width = 16;
  facts.gpus[0].max_pcie_generation = 5;
  facts.gpus[0].max_pcie_width = 16;
  const auto rate = [&] {
    const Machine machine = with_gpu_facts(bare, facts);
    for (const Link& link : machine.links)
      if (link.kind == LinkKind::Pcie) return link.bytes_per_second[0];
    return 0.0;
  };
  CHECK(rate() > 45e9);
  // What has been measured stays.
  pcie->provenance = Provenance::Measured;
  CHECK(rate() == 3.2e9);
}

TEST_CASE("any facts give a machine that is consistent, and the same when laid over again",
          "[gpu_facts]") {
  const std::vector<const char*> pool = {"0000:05:00.0", "0000:06:00.0", "0001:05:00.0",
                                         "10001:05:00.0", "0000:07:00.0"};
  for (unsigned seed = 0; seed < 3000; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::vector<const char*> addresses = pool;
    std::shuffle(addresses.begin(), addresses.end(), random);
    const std::vector<const char*> on_bus(addresses.begin(),
                                          addresses.begin() + 1 + static_cast<long>(below(4)));
    const Machine bare = host(on_bus, below(2) == 0);
    GpuFacts facts;
    std::shuffle(addresses.begin(), addresses.end(), random);
    const std::size_t count = below(6);
    int ordinal = 0;
    for (std::size_t g = 0; g < count; ++g) {
      GpuFact fact = h200(addresses[g % addresses.size()], below(3) ? ordinal++ : -1);
      if (below(8) == 0) fact.pci.reset();
      fact.numa_node = static_cast<std::int64_t>(below(4)) - 1;
      fact.is_prohibited = below(8) == 0;
      fact.is_mig_enabled = below(6) == 0;
      if (below(6) == 0) fact.mig_parent = "?";
      fact.has_c2c = below(8) == 0;
      for (std::size_t i = below(6); i > 0; --i)
        fact.nvlinks.push_back(
            {static_cast<NvlinkRemote>(below(4)),
             below(3) ? std::optional(at(pool[below(pool.size())])) : std::nullopt,
             static_cast<std::uint32_t>(below(7)), 1e9});
      for (std::size_t i = below(6); i > 0; --i)
        fact.peers.push_back({below(2) == 0, below(2) == 0, 0});
      facts.gpus.push_back(std::move(fact));
    }
    if (below(3) == 0) facts.visible_devices = "0,GPU-";
    if (below(3) == 0) facts.nvml_problem = "no NVML";
    if (below(6) == 0) facts.cuda_problem = "no CUDA";

    const Machine machine = with_gpu_facts(bare, facts);
    REQUIRE_NOTHROW(check_machine(machine));
    CHECK(machine.gpus.size() >= bare.gpus.size());
    CHECK(std::is_sorted(machine.gpus.begin(), machine.gpus.end(), [](const Gpu& a, const Gpu& b) {
      return a.pci && b.pci && *a.pci < *b.pci;
    }));
    std::set<int> seen;
    for (const int found : cuda_ordinals(machine, facts))
      if (found >= 0) CHECK(seen.insert(found).second);
    for (std::uint32_t g = 0; g < machine.gpus.size(); ++g)
      CHECK(machine.memories[machine.gpus[g].memory.value].gpu == GpuId{g});
    Machine again = with_gpu_facts(machine, facts);
    again.warnings = machine.warnings;
    CHECK(again == machine);
  }
}

TEST_CASE("captured machines take facts about their GPUs in any order", "[gpu_facts]") {
  std::size_t machines = 0;
  for (const std::string& file : corpus::good_files()) {
    INFO(file);
    const Machine bare = load_machine(file);
    std::set<PciAddress> addresses;
    for (const Gpu& gpu : bare.gpus)
      if (gpu.vendor == "NVIDIA" && gpu.pci) addresses.insert(*gpu.pci);
    if (addresses.empty()) continue;
    ++machines;
    GpuFacts facts;
    int ordinal = 0;
    for (auto address = addresses.rbegin(); address != addresses.rend(); ++address) {
      GpuFact fact;
      fact.pci = *address;
      fact.name = "a GPU";
      fact.uuid = "GPU-" + to_string(*address);
      fact.cuda_ordinal = ordinal++;
      fact.memory_bytes = kGiB;
      facts.gpus.push_back(fact);
    }
    const Machine machine = with_gpu_facts(bare, facts);
    REQUIRE_NOTHROW(check_machine(machine));
    CHECK(machine.gpus.size() == bare.gpus.size());
    CHECK(machine.sockets == bare.sockets);
    CHECK(nvlinks(machine) == nvlinks(bare));
    const std::vector<int> ordinals = cuda_ordinals(machine, facts);
    std::set<int> seen;
    for (std::size_t g = 0; g < machine.gpus.size(); ++g) {
      CHECK(machine.gpus[g].pci == bare.gpus[g].pci);
      if (ordinals[g] < 0) continue;
      CHECK(seen.insert(ordinals[g]).second);
      CHECK(facts.gpus[static_cast<std::size_t>(ordinals[g])].pci == machine.gpus[g].pci);
    }
    CHECK(seen.size() == addresses.size());
  }
  std::cout << machines << " captured machines with NVIDIA GPUs\n";
}
