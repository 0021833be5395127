// The hard point of single captured files, as the folder's INDEX.md names it.
#include <set>

#include "support/catch.hpp"
#include "topology/corpus.hpp"
#include "topology/import.hpp"
#include "topology/route.hpp"

using namespace weft;

namespace {

/// A captured machine; nothing where the folder is not there.
std::optional<Machine> captured(const char* file) {
  const std::filesystem::path root = corpus::folder();
  if (root.empty()) return std::nullopt;
  return load_machine((root / file).string());
}

const Link* link_between(const Machine& machine, Node a, Node b) {
  for (const Link& link : machine.links)
    if ((link.a == a && link.b == b) || (link.a == b && link.b == a)) return &link;
  return nullptr;
}

}  // namespace

TEST_CASE("hybrid processors have cores of several efficiencies, equal cores none", "[topology]") {
  const auto efficiencies = [](const char* file) {
    std::multiset<std::int32_t> found;
    if (const auto machine = captured(file))
      for (const Core& core : machine->sockets[0].cores) found.insert(core.efficiency);
    return found;
  };
  if (corpus::folder().empty()) return;
  const auto hybrid = efficiencies("hwloc/laptop-hybrid-i7-1370p.xml");
  CHECK(hybrid.count(0) == 8);
  CHECK(hybrid.count(1) == 6);
  const auto arrow = efficiencies("hwloc/laptop-arrowlake-ultra5-225u-cpuid.xml");
  CHECK(arrow.count(0) == 2);
  CHECK(arrow.count(1) == 8);
  CHECK(arrow.count(2) == 2);
  const auto spark = efficiencies("hwloc/arm-dgx-spark-gb10.xml");
  CHECK(spark.count(0) == 10);
  CHECK(spark.count(1) == 10);
  CHECK(efficiencies("hwloc/arm-gh200-72core.xml").count(-1) == 72);
}

TEST_CASE("GPU memories that Linux shows as NUMA nodes belong to their GPUs", "[topology]") {
  const auto machine = captured("hwloc/power9-ac922-4xV100-6numa-v1.xml");
  if (!machine) return;
  for (std::uint32_t g = 0; g < 4; ++g) {
    const Memory& memory = machine->memories[machine->gpus[g].memory.value];
    CHECK(memory.kind == MemoryKind::Gpu);
    CHECK(memory.gpu == GpuId{g});
    CHECK(memory.os_index == 255 - g);
    CHECK(memory.near.empty());
  }
}

TEST_CASE("tiles of one chip are devices that share a PCI function and say so", "[topology]") {
  const auto flat = captured("hwloc/intel-max1550-4gpu-flat-reduced.xml");
  const auto composite = captured("hwloc/intel-max1550-4gpu-composite-reduced.xml");
  if (!flat || !composite) return;
  CHECK(flat->gpus[0].shares_with == std::vector<GpuId>{{1}});
  CHECK(flat->gpus[0].pci == flat->gpus[1].pci);
  CHECK(flat->gpus[2].shares_with == std::vector<GpuId>{{3}});
  CHECK(composite->gpus.size() == 4);
  CHECK(composite->gpus[0].shares_with.empty());
}

TEST_CASE("an APU works in the memory of its socket", "[topology]") {
  const auto machine = captured("hwloc/ex255a-4xMI300A-spx.xml");
  if (!machine) return;
  for (std::uint32_t g = 0; g < 4; ++g) {
    CHECK(machine->gpus[g].memory == machine->sockets[g].memories[0]);
    CHECK(find_route(*machine, GpuId{g}, machine->sockets[g].memories[0]).route_class ==
          RouteClass::SameMemory);
  }
  CHECK(find_route(*machine, GpuId{0}, GpuId{3}).route_class == RouteClass::Nvlink);
}

TEST_CASE("POWER8's GPUs reach their socket by NVLink", "[topology]") {
  const auto machine = captured("hwloc/power8-minsky-4xP100-nvlink-hetero-matrix.xml");
  if (!machine) return;
  const Link* link = link_between(*machine, SocketId{0}, GpuId{0});
  REQUIRE(link);
  CHECK(link->kind == LinkKind::Nvlink);
  CHECK(link->width == 2);
  CHECK(link->bytes_per_second[0] == 40e9);
  CHECK(find_route(*machine, MemoryId{0}, GpuId{1}).route_class == RouteClass::Nvlink);
  CHECK(find_route(*machine, GpuId{0}, GpuId{1}).route_class == RouteClass::Nvlink);
  CHECK(find_route(*machine, GpuId{0}, GpuId{2}).route_class == RouteClass::AcrossSockets);
}

TEST_CASE("NVSwitches of a DGX-2 board work as one", "[topology]") {
  const auto machine = captured("hwloc/dgx2-16xV100-nvswitch-4pu.xml");
  if (!machine) return;
  const Route route = find_route(*machine, GpuId{0}, GpuId{7});
  CHECK(route.route_class == RouteClass::Nvlink);
  CHECK(route.hops.size() == 2);
  CHECK(route.bytes_per_second == 150e9);
}

TEST_CASE("GPUs know the NUMA node they are near to, whatever their order", "[topology]") {
  const auto machine = captured("hwloc/epyc-7402-4xA100-nps4.xml");
  if (!machine) return;
  std::vector<std::int64_t> numbers;
  for (const Gpu& gpu : machine->gpus) {
    REQUIRE(gpu.near.size() == 1);
    numbers.push_back(machine->memories[gpu.near[0].value].os_index);
  }
  CHECK(numbers == std::vector<std::int64_t>{3, 1, 7, 5});
  const auto smi = captured("smi/4xA100-nps4-pcie-only-commented.txt");
  for (std::uint32_t g = 0; g < 4; ++g) {
    CHECK(smi->memories[smi->gpus[g].near[0].value].os_index == numbers[g]);
    CHECK(find_route(*smi, GpuId{g}, NicId{g}).route_class == RouteClass::SameSwitch);
  }
}

TEST_CASE("a memory of KNL's MCDRAM is HBM near its cluster", "[topology]") {
  const auto machine = captured("hwloc/knl-7250-snc4-flat-v1.xml");
  if (!machine) return;
  for (const Memory& memory : machine->memories) {
    CHECK(memory.near == std::vector<SocketId>{{0}});
    CHECK((memory.cpus.size() == 72 || memory.cpus.size() == 64));
  }
}

TEST_CASE("interleaved memory without processors is near no socket but reached by all",
          "[topology]") {
  const auto machine = captured("hwloc/itanium-128core-17numa.xml");
  if (!machine) return;
  const MemoryId last{16};
  CHECK(machine->memories[16].near.empty());
  CHECK(find_route(*machine, SocketId{63}, last).hops.size() == 1);
}

TEST_CASE("NVLink is seen between some pairs only", "[topology]") {
  const auto machine = captured("smi/8xV100-dgx1-4hca.txt");
  if (!machine) return;
  CHECK(link_between(*machine, GpuId{0}, GpuId{3})->width == 2);
  CHECK(link_between(*machine, GpuId{0}, GpuId{1})->width == 1);
  CHECK(link_between(*machine, GpuId{0}, GpuId{5}) == nullptr);
  const auto other = captured("smi/8xV100-sxm2-2hca-double-tabs.txt");
  CHECK(link_between(*other, GpuId{0}, GpuId{7})->width == 2);
}

TEST_CASE("more NVLinks than a GPU has mean NVSwitches", "[topology]") {
  const auto machine = captured("smi/8xH200-nvswitch-10nic-ansi.txt");
  if (!machine) return;
  const Route route = find_route(*machine, GpuId{0}, GpuId{7});
  CHECK(route.route_class == RouteClass::Nvlink);
  CHECK(route.hops.size() == 2);
  CHECK(route.bytes_per_second == 450e9);
  CHECK(machine->nics[0].name == "mlx5_0");
  // Three adapters are behind one switch with GPU 3.
  for (const std::uint32_t nic : {0u, 1u, 2u})
    CHECK(find_route(*machine, GpuId{3}, NicId{nic}).route_class == RouteClass::SameSwitch);
}

TEST_CASE("empty affinity columns are not filled from the ones beside", "[topology]") {
  const auto machine = captured("smi/2xA100-8nic-no-affinity-columns-filled.txt");
  if (!machine) return;
  CHECK(machine->sockets.empty());
  CHECK(find_route(*machine, GpuId{0}, GpuId{1}).route_class == RouteClass::Nvlink);
  CHECK(find_route(*machine, GpuId{0}, NicId{6}).route_class == RouteClass::SameSwitch);
  CHECK(find_route(*machine, GpuId{0}, NicId{0}).route_class == RouteClass::AcrossSockets);
}

TEST_CASE("devices of a matrix keep its order whatever place they are at", "[topology]") {
  const auto machine = captured("smi/5gpu-mixed-models-first-gpu-on-numa1.txt");
  if (!machine) return;
  CHECK(machine->memories[machine->gpus[0].near.at(0).value].os_index == 1);
  for (const std::uint32_t g : {1u, 2u, 3u, 4u})
    CHECK(machine->memories[machine->gpus[g].near.at(0).value].os_index == 0);
  CHECK(find_route(*machine, GpuId{1}, GpuId{2}).route_class == RouteClass::SameHostBridge);
  CHECK(find_route(*machine, GpuId{1}, GpuId{3}).route_class == RouteClass::SameSocket);
}

TEST_CASE("xGMI links keep their widths", "[topology]") {
  const auto machine = captured("nccl/rccl-16xMI250X-gcd.xml");
  if (!machine) return;
  std::multiset<std::uint32_t> widths;
  for (const Link& link : machine->links)
    if (link.kind == LinkKind::Xgmi) widths.insert(link.width);
  CHECK(widths.count(4) == 8);
  CHECK(widths.count(2) == 4);
  CHECK(widths.count(1) == 16);
  const auto hives = captured("nccl/rccl-16xMI100-one-cpu.xml");
  CHECK(find_route(*hives, GpuId{0}, GpuId{15}).route_class != RouteClass::Nvlink);
}

TEST_CASE("four links to NVSwitches of two each are eight links to one", "[topology]") {
  const auto machine = captured("nccl/8xH800-nvlink-8.xml");
  if (!machine) return;
  for (const Link& link : machine->links)
    if (link.kind == LinkKind::Nvlink) {
      CHECK(link.width == 8);
      CHECK(link.bytes_per_second[0] == 200e9);
    }
}

TEST_CASE("a port speed in the wrong unit is set right with a warning", "[topology]") {
  const auto machine = captured("nccl/rccl-4xMI300A-speed-in-wrong-unit.xml");
  if (!machine) return;
  for (const Link& link : machine->links)
    if (link.kind == LinkKind::Network) CHECK(link.bytes_per_second[0] == 25e9);
}

TEST_CASE("memory bandwidths that firmware states are reported", "[topology]") {
  const auto machine = captured("hwloc/arm-gh200-72core.xml");
  if (!machine) return;
  CHECK(machine->links[0].bytes_per_second[0] == 512e9);
  CHECK(machine->links[0].provenance == Provenance::Reported);
}
