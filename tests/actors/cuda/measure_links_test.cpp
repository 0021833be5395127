#include "actors/cuda/measure_links.hpp"

#include <iostream>

#include "actors/cuda/discover.hpp"
#include "actors/cuda/link_flows.hpp"
#include "support/catch.hpp"
#include "topology/describe.hpp"
#include "topology/discover.hpp"
#include "topology/names.hpp"
#include "topology/quantity.hpp"
#include "topology/shipped.hpp"

using namespace weft;

namespace {

std::vector<bool> all(const Machine& machine) {
  return std::vector<bool>(machine.gpus.size(), true);
}

LinkId find_link(const Machine& machine, LinkKind kind, Node end) {
  for (std::uint32_t i = 0; i < machine.links.size(); ++i)
    if (machine.links[i].kind == kind && (machine.links[i].a == end || machine.links[i].b == end))
      return LinkId{i};
  return {};
}

}  // namespace

TEST_CASE("a GPU's PCIe link is loaded from the memory near it", "[cuda]") {
  const Machine machine = parse_machine("2 sockets x 2 cores, 2 gpus");
  const auto load =
      flows_of_link(machine, find_link(machine, LinkKind::Pcie, GpuId{1}), all(machine));
  REQUIRE(load);
  CHECK(load->under_test[0] == std::vector<LinkFlow>{{MemoryId{1}, GpuId{1}}});
  CHECK(load->under_test[1] == std::vector<LinkFlow>{{GpuId{1}, MemoryId{1}}});
  CHECK(load->neighbours[0] == std::vector<LinkFlow>{{MemoryId{0}, GpuId{0}}});
  CHECK_FALSE(flows_of_link(machine, find_link(machine, LinkKind::Pcie, GpuId{1}), {true, false}));
}

TEST_CASE("a direct NVLink is loaded by the GPUs at its ends, in its own direction", "[cuda]") {
  const Machine machine = parse_machine("1 socket, 2 gpus, nvlink");
  const LinkId link = find_link(machine, LinkKind::Nvlink, GpuId{0});
  const auto load = flows_of_link(machine, link, all(machine));
  REQUIRE(load);
  const Link& told = machine.links[link.value];
  CHECK(load->under_test[0] == std::vector<LinkFlow>{{told.a, told.b}});
  CHECK(load->under_test[1] == std::vector<LinkFlow>{{told.b, told.a}});
  CHECK(load->neighbours[0].size() == 3);
  CHECK_FALSE(flows_of_link(machine, link, {true, false}));
}

TEST_CASE("a GPU's link to a switch is loaded by copies to another GPU of it", "[cuda]") {
  const Machine machine = machine_from("hgx-h100");
  for (std::uint32_t g = 0; g < machine.gpus.size(); ++g) {
    const LinkId link = find_link(machine, LinkKind::Nvlink, GpuId{g});
    REQUIRE(link.is_valid());
    const Link& told = machine.links[link.value];
    REQUIRE((told.a.kind == NodeKind::Hub || told.b.kind == NodeKind::Hub));
    const auto load = flows_of_link(machine, link, all(machine));
    REQUIRE(load);
    const std::size_t out = told.a == Node(GpuId{g}) ? 0 : 1;
    CHECK(load->under_test[out][0].from == Node(GpuId{g}));
    CHECK(load->under_test[out][0].to != Node(GpuId{g}));
    CHECK(load->under_test[1 - out][0].to == Node(GpuId{g}));
    // Alone at its switch there is nothing to copy to.
    std::vector<bool> one(machine.gpus.size());
    one[g] = true;
    CHECK_FALSE(flows_of_link(machine, link, one));
  }
}

TEST_CASE("what leads to no GPU is not measured by CUDA", "[cuda]") {
  for (const std::string& name : shipped_machines()) {
    const Machine machine = machine_from(name);
    for (std::uint32_t i = 0; i < machine.links.size(); ++i) {
      const Link& link = machine.links[i];
      const auto load = flows_of_link(machine, LinkId{i}, all(machine));
      INFO(name << " link" << i << " " << describe(link));
      if (link.kind == LinkKind::Bus || link.kind == LinkKind::Socket ||
          link.kind == LinkKind::Network || link.kind == LinkKind::Disk ||
          link.b.kind == NodeKind::Nic)
        CHECK_FALSE(load);
      if (!load) continue;
      CHECK(load->under_test[0].size() == load->under_test[1].size());
      for (const auto& flows : load->under_test)
        for (const LinkFlow& flow : flows) {
          CHECK((flow.from.kind == NodeKind::Gpu || flow.to.kind == NodeKind::Gpu));
          CHECK(flow.from != flow.to);
        }
      CHECK_FALSE(flows_of_link(machine, LinkId{i}, std::vector<bool>(machine.gpus.size())));
    }
  }
}

TEST_CASE("the links of this machine's GPUs have plausible figures", "[gpu]") {
  const GpuFacts facts = read_gpu_facts();
  if (!facts.cuda_problem.empty()) {
    std::cout << "skipped: " << facts.cuda_problem << '\n';
    return;
  }
  const Machine machine = discover_with_cuda(facts);
  CudaLinkMeter meter(machine, cuda_ordinals(machine, facts));
  std::size_t measured = 0;
  for (std::uint32_t i = 0; i < machine.links.size(); ++i) {
    const Link& link = machine.links[i];
    const auto figures = meter.measure(LinkId{i});
    if (!figures) continue;
    ++measured;
    std::cout << "link" << i << ' ' << describe(link) << ' ' << to_string(link.a) << '-'
              << to_string(link.b) << ": alone " << format_rate(figures->alone[0]) << ", "
              << format_rate(figures->alone[1]) << "; busy " << format_rate(figures->busy[0])
              << ", " << format_rate(figures->busy[1]) << "; " << figures->latency.count()
              << " ns\n";
    INFO("link" << i);
    for (const std::size_t way : {0u, 1u}) {
      CHECK(figures->alone[way] > 1e9);
      CHECK(figures->alone[way] < 2e12);
      // No link carries more than its peak says, where the source states that.
      if (link.provenance == Provenance::Reported)
        CHECK(figures->alone[way] < 1.35 * link.bytes_per_second[way]);
      CHECK(figures->busy[way] > 0);
      CHECK(figures->busy[way] < 1.15 * figures->alone[way]);
    }
    CHECK(figures->latency.count() > 100);
    CHECK(figures->latency.count() < 100'000);
  }
  CHECK(measured > 0);
  CHECK(meter.damaged_peers().empty());
}
