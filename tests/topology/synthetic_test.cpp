#include <string>

#include "support/catch.hpp"
#include "topology/discover.hpp"
#include "topology/route.hpp"
#include "topology/route_table.hpp"

using namespace weft;

namespace {

std::string error_of(const std::string& description) {
  try {
    parse_machine(description);
  } catch (const TopologyError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a synthetic machine has what its description says", "[topology]") {
  const Machine machine = parse_machine("2 sockets x 8 cores x 2 threads, 4 gpus, nvlink");
  REQUIRE(machine.sockets.size() == 2);
  REQUIRE(machine.sockets[0].cores.size() == 8);
  REQUIRE(machine.sockets[1].cpus.front() == 16);
  REQUIRE(machine.sockets[1].cpus.back() == 31);
  REQUIRE(machine.sockets[0].cores[1].pus == std::vector<std::uint32_t>{2, 3});
  REQUIRE(machine.gpus.size() == 4);
  REQUIRE(machine.memories.size() == 6);
  REQUIRE(machine.gpus[1].near == machine.sockets[0].memories);
  REQUIRE(machine.gpus[2].near == machine.sockets[1].memories);
  int nvlinks = 0;
  for (const Link& link : machine.links) nvlinks += link.kind == LinkKind::Nvlink;
  REQUIRE(nvlinks == 6);
}

TEST_CASE("what a description leaves out has a default", "[topology]") {
  const Machine machine = parse_machine("2 gpus");
  REQUIRE(machine.sockets.size() == 1);
  REQUIRE(machine.sockets[0].cpus == std::vector<std::uint32_t>{0});
  for (const Link& link : machine.links)
    if (link.kind == LinkKind::Pcie) REQUIRE(link.bytes_per_second[0] == 25e9);
}

TEST_CASE("sizes and rates of a description are taken over", "[topology]") {
  const Machine machine = parse_machine(
      "1 socket, memory 128 GB, 2 GPUs, gpu memory 80 GB, pcie 50 GB/s, nvlink 150 GB/s");
  REQUIRE(machine.memories[0].bytes == std::size_t{128} << 30);
  REQUIRE(machine.memories[machine.gpus[0].memory.value].bytes == std::size_t{80} << 30);
  for (const Link& link : machine.links) {
    if (link.kind == LinkKind::Pcie) REQUIRE(link.bytes_per_second[1] == 50e9);
    if (link.kind == LinkKind::Nvlink) REQUIRE(link.bytes_per_second[0] == 150e9);
  }
}

TEST_CASE("several hosts are joined by a network", "[topology]") {
  const Machine machine = parse_machine("2 sockets x 4 cores, 2 gpus, 3 hosts");
  REQUIRE(machine.sockets.size() == 6);
  REQUIRE(machine.gpus.size() == 6);
  REQUIRE(machine.nics.size() == 3);
  REQUIRE(machine.hubs.back().kind == HubKind::Network);
  REQUIRE(machine.sockets[5].cpus.back() == 23);
}

TEST_CASE("the rate of the network is taken over", "[topology]") {
  const Machine machine = parse_machine("2 hosts, 1 gpu, network 12.5 GB/s");
  int links = 0;
  for (const Link& link : machine.links) {
    if (link.kind != LinkKind::Network) continue;
    ++links;
    REQUIRE(link.bytes_per_second[0] == 12.5e9);
  }
  REQUIRE(links == 2);
  REQUIRE(find_route(machine, GpuId{0}, GpuId{1}).bytes_per_second == 12.5e9);
  REQUIRE(error_of("2 gpus, network 12 GB/s").find("more than one host") != std::string::npos);
  REQUIRE(error_of("2 hosts, network fast").find("\"network fast\"") != std::string::npos);
}

TEST_CASE("a cluster of 1,024 GPUs has routes between all pairs", "[topology]") {
  const Machine machine = parse_machine("128 hosts, 2 sockets x 8 cores, 8 gpus, nvlink");
  REQUIRE(machine.gpus.size() == 1024);
  REQUIRE(machine.nics.size() == 128);
  REQUIRE(machine.sockets.size() == 256);
  REQUIRE(machine.hubs.back().kind == HubKind::Network);
  std::vector<Node> gpus;
  for (std::uint32_t g = 0; g < machine.gpus.size(); ++g) gpus.push_back(GpuId{g});
  const RouteTable table(machine, gpus);
  REQUIRE(table.route_class(0, 7) == RouteClass::Nvlink);
  REQUIRE(table.bytes_per_second(0, 7) == 300e9);
  for (const std::size_t far : {8u, 512u, 1023u}) {
    REQUIRE(table.route_class(0, far) == RouteClass::Network);
    REQUIRE(table.bytes_per_second(0, far) == 25e9);
    REQUIRE(table.route(0, far) == find_route(machine, GpuId{0}, gpus[far]));
  }
}

TEST_CASE("a bad part of a description is named", "[topology]") {
  for (const char* bad :
       {"", ",", "2 gpus,", "two sockets", "0 sockets", "2 sockets x 8", "2 sockets x 8 cores x",
        "2 gpus, 2 gpus", "pcie fast", "nvlink 3", "memory -1 GB", "99999999999 gpus",
        "4 gpus extra", "socketss", "4096 gpus, nvlink, 65536 hosts", "4096 sockets",
        "5 hosts, 2812 sockets"}) {
    INFO(bad);
    const std::string error = error_of(bad);
    REQUIRE_FALSE(error.empty());
  }
  REQUIRE(error_of("2 sockets, three gpus").find("\"three gpus\"") != std::string::npos);
  REQUIRE(error_of("2 sockets, three gpus").find("expected") != std::string::npos);
}

TEST_CASE("the tree names every device and its rate", "[topology]") {
  const std::string tree = print_tree(parse_machine("2 sockets x 8 cores, 4 gpus, nvlink"));
  INFO(tree);
  REQUIRE(tree.find("socket1") != std::string::npos);
  REQUIRE(tree.find("gpu3") != std::string::npos);
  REQUIRE(tree.find("pcie 25 GB/s (assumed)") != std::string::npos);
  REQUIRE(tree.find("between every two of gpu0-3") != std::string::npos);
}
