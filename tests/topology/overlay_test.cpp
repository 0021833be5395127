#include "topology/overlay.hpp"

#include "support/catch.hpp"
#include "topology/corpus.hpp"
#include "topology/discover.hpp"
#include "topology/import.hpp"
#include "topology/machine_edit.hpp"
#include "topology/route.hpp"
#include "topology/samples.hpp"

using namespace weft;

namespace {

bool warns(const Machine& machine, const std::string& code) {
  for (const Warning& warning : machine.warnings)
    if (warning.code == code) return true;
  return false;
}

std::size_t count(const Machine& machine, LinkKind kind) {
  std::size_t n = 0;
  for (const Link& link : machine.links) n += link.kind == kind;
  return n;
}

}  // namespace

TEST_CASE("NCCL's links are laid over hwloc's host by PCI address", "[topology]") {
  const Machine host = import_machine(samples::kHwlocV2, "hwloc");
  const Machine links = import_machine(samples::kNccl, "nccl");
  const Machine both = overlay(host, links);
  CHECK(both.source == "hwloc + nccl");
  CHECK(both.sockets == host.sockets);
  CHECK(both.gpus.size() == 2);
  CHECK(both.nics.size() == 1);
  CHECK(count(both, LinkKind::Nvlink) == 1);
  CHECK(count(both, LinkKind::Network) == 1);
  CHECK_FALSE(warns(both, "gpus_matched_by_order"));
  CHECK_FALSE(warns(both, "sources_disagree"));
  // Whichever is named first: only the host knows packages, but both have sockets here.
  CHECK(overlay(links, host).gpus[0].uuid == "GPU-1");
}

TEST_CASE("a topo -m matrix is laid over by order, with a warning", "[topology]") {
  const Machine host = import_machine(samples::kHwlocV2, "hwloc");
  const Machine both = overlay(host, import_machine(samples::kSmi, "smi"));
  CHECK(warns(both, "gpus_matched_by_order"));
  CHECK(count(both, LinkKind::Nvlink) == 1);
  CHECK(find_route(both, GpuId{0}, GpuId{1}).bytes_per_second == 100e9);
  CHECK(both.nics.size() == 1);
}

TEST_CASE("GPUs that only the second source has are added", "[topology]") {
  const Machine host = parse_machine("2 sockets x 2 cores");
  const Machine both = overlay(host, import_machine(samples::kNccl, "nccl"));
  REQUIRE(both.gpus.size() == 2);
  CHECK(both.gpus[1].near == std::vector<MemoryId>{{1}});
  CHECK(find_route(both, MemoryId{0}, GpuId{0}).route_class == RouteClass::SameSocket);
  CHECK_FALSE(warns(both, "not_connected"));
}

TEST_CASE("sources of different machines are refused", "[topology]") {
  const Machine host = parse_machine("1 socket, 3 gpus");
  CHECK_THROWS_WITH(overlay(host, import_machine(samples::kSmi, "smi")),
                    contains_text("3 and 2 GPUs"));
}

TEST_CASE("sources that contradict each other are kept apart with a warning", "[topology]") {
  const Machine host = import_machine(samples::kHwlocV2, "hwloc");
  std::string text = samples::kSmi;
  text.replace(text.find("0-3\t0"), 5, "4-5\t1");
  text.replace(text.rfind("4-5\t1"), 5, "0-3\t0");
  const Machine both = overlay(host, import_machine(text, "smi"));
  CHECK(warns(both, "sources_disagree"));
  CHECK(both.gpus[0].near == host.gpus[0].near);
}

TEST_CASE("captured pairs of one machine fit on each other", "[topology]") {
  const std::filesystem::path root = corpus::folder();
  if (root.empty()) return;
  const Machine turin =
      overlay(load_machine((root / "hwloc/sd665n-4xH200-turin-8numa.xml").string()),
              load_machine((root / "smi/4xH200-nv6-turin-8numa.txt").string()));
  CHECK_FALSE(warns(turin, "sources_disagree"));
  CHECK(count(turin, LinkKind::Nvlink) == 6);
  CHECK(find_route(turin, GpuId{0}, GpuId{3}).bytes_per_second == 150e9);
  const Machine juwels =
      overlay(load_machine((root / "hwloc/epyc-7402-4xA100-nps4.xml").string()),
              load_machine((root / "smi/4xA100-nps4-pcie-only-commented.txt").string()));
  CHECK_FALSE(warns(juwels, "sources_disagree"));
  CHECK(juwels.nics.size() == 6);
}

TEST_CASE("a figure is set by its path", "[topology]") {
  const Machine machine = parse_machine("1 socket x 2 cores, 2 gpus, nvlink");
  const Machine slow = with_value(machine, "link1.bytes_per_second=12 GB/s");
  CHECK(slow.links[1].bytes_per_second[0] == 12e9);
  CHECK(with_value(machine, "link1.bytes_per_second=[1e9,2e9]").links[1].bytes_per_second[1] ==
        2e9);
  CHECK(with_value(machine, "gpu1.model=H100").gpus[1].model == "H100");
  CHECK(with_value(machine, "mem0.bytes=1 TB").memories[0].bytes == std::size_t{1} << 40);
  CHECK(with_value(machine, "source=mine").source == "mine");
  for (const char* bad :
       {"", "gpu1", "gpu1.model", "=x", "gpu9.model=x", "cat0.x=1", "gpu1.colour=red",
        "link1.bytes_per_second=fast", "gpu0.memory=mem9", "gpu1.=x"}) {
    INFO(bad);
    CHECK_THROWS_AS(with_value(machine, bad), TopologyError);
  }
}

TEST_CASE("a thing is removed with what hangs on it", "[topology]") {
  const Machine machine = parse_machine("2 sockets x 2 cores, 4 gpus, nvlink");
  const Machine three = without(machine, "gpu1");
  CHECK(three.gpus.size() == 3);
  CHECK(three.memories.size() == machine.memories.size() - 1);
  CHECK(count(three, LinkKind::Nvlink) == 3);
  for (std::uint32_t g = 0; g < 3; ++g)
    CHECK(three.memories[three.gpus[g].memory.value].gpu == GpuId{g});
  const Machine apart = without(machine, "gpu0-gpu3");
  CHECK(count(apart, LinkKind::Nvlink) == 5);
  CHECK(find_route(apart, GpuId{0}, GpuId{3}).route_class == RouteClass::AcrossSockets);
  CHECK(without(machine, "link0").links.size() == machine.links.size() - 1);
  const Machine one = without(machine, "socket1");
  CHECK(one.sockets.size() == 1);
  CHECK(warns(one, "not_connected"));
  for (const char* bad : {"gpu4", "link99", "", "gpu", "gpu0-", "gpu0-gpu9", "socket0-gpu0"}) {
    INFO(bad);
    CHECK_THROWS_AS(without(machine, bad), TopologyError);
  }
}
