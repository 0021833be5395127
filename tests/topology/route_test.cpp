#include <cmath>

#include "support/catch.hpp"
#include "topology/discover.hpp"
#include "topology/route.hpp"
#include "topology/route_finder.hpp"

using namespace weft;

namespace {

Link link_of(LinkKind kind, Node a, Node b, double there, double back) {
  Link link;
  link.kind = kind;
  link.a = a;
  link.b = b;
  link.bytes_per_second[0] = there;
  link.bytes_per_second[1] = back;
  return link;
}

}  // namespace

TEST_CASE("a memory reaches a GPU over socket, host bridge and PCIe", "[topology]") {
  const Machine machine = parse_machine("2 sockets, 2 gpus");
  const Route route = find_route(machine, MemoryId{0}, GpuId{0});
  REQUIRE(route.route_class == RouteClass::SameSocket);
  REQUIRE(route.bytes_per_second == 25e9);
  const auto nodes = nodes_of(machine, route);
  REQUIRE(nodes.size() == 4);
  REQUIRE(nodes.front() == Node(MemoryId{0}));
  REQUIRE(nodes[1] == Node(SocketId{0}));
  REQUIRE(nodes.back() == Node(GpuId{0}));
  REQUIRE(route.latency == std::chrono::nanoseconds(700));
}

TEST_CASE("a GPU and its memory are one place", "[topology]") {
  const Machine machine = parse_machine("1 socket, 2 gpus");
  const MemoryId memory = machine.gpus[1].memory;
  const Route none = find_route(machine, GpuId{1}, memory);
  REQUIRE(none.route_class == RouteClass::SameMemory);
  REQUIRE(none.hops.empty());
  REQUIRE(std::isinf(none.bytes_per_second));
  REQUIRE(find_route(machine, MemoryId{0}, memory) == find_route(machine, MemoryId{0}, GpuId{1}));
}

TEST_CASE("routes are classed by what they cross", "[topology]") {
  const Machine machine = parse_machine("2 sockets, 4 gpus");
  REQUIRE(find_route(machine, GpuId{0}, GpuId{1}).route_class == RouteClass::SameHostBridge);
  REQUIRE(find_route(machine, GpuId{0}, GpuId{2}).route_class == RouteClass::AcrossSockets);
  REQUIRE(find_route(machine, MemoryId{0}, GpuId{3}).route_class == RouteClass::AcrossSockets);
  const Machine fast = parse_machine("2 sockets, 4 gpus, nvlink");
  REQUIRE(find_route(fast, GpuId{0}, GpuId{3}).route_class == RouteClass::Nvlink);
  REQUIRE(find_route(fast, GpuId{0}, GpuId{3}).hops.size() == 1);
  const Machine cluster = parse_machine("1 socket, 1 gpu, 2 hosts");
  REQUIRE(find_route(cluster, GpuId{0}, GpuId{1}).route_class == RouteClass::Network);
}

TEST_CASE("a route never passes through a GPU", "[topology]") {
  // gpu0 - gpu1 - gpu2 in a row by NVLink: gpu0 to gpu2 must not go over gpu1.
  Machine machine = parse_machine("1 socket, 3 gpus");
  for (const std::uint32_t g : {0u, 1u})
    machine.links.push_back(link_of(LinkKind::Nvlink, GpuId{g}, GpuId{g + 1}, 200e9, 200e9));
  const Route route = find_route(machine, GpuId{0}, GpuId{2});
  REQUIRE(route.route_class == RouteClass::SameHostBridge);
  REQUIRE(route.bytes_per_second == 25e9);
  REQUIRE(find_route(machine, GpuId{0}, GpuId{1}).route_class == RouteClass::Nvlink);
}

TEST_CASE("an NVSwitch is crossed, a slow NVLink loses against fast PCIe", "[topology]") {
  Machine machine = parse_machine("2 sockets, 2 gpus, pcie 50 GB/s");
  Hub hub;
  hub.kind = HubKind::NvSwitch;
  machine.hubs.push_back(hub);
  const HubId nvswitch{static_cast<std::uint32_t>(machine.hubs.size() - 1)};
  for (const std::uint32_t g : {0u, 1u})
    machine.links.push_back(link_of(LinkKind::Nvlink, GpuId{g}, nvswitch, 450e9, 450e9));
  REQUIRE(find_route(machine, GpuId{0}, GpuId{1}).route_class == RouteClass::Nvlink);
  for (Link& link : machine.links)
    if (link.kind == LinkKind::Nvlink) link.bytes_per_second[0] = link.bytes_per_second[1] = 10e9;
  REQUIRE(find_route(machine, GpuId{0}, GpuId{1}).route_class == RouteClass::AcrossSockets);
}

TEST_CASE("a direction out of order is not used", "[topology]") {
  Machine machine = parse_machine("1 socket, 2 gpus, nvlink");
  for (Link& link : machine.links)
    if (link.kind == LinkKind::Nvlink) link.bytes_per_second[0] = 0;
  REQUIRE(find_route(machine, GpuId{0}, GpuId{1}).route_class == RouteClass::SameHostBridge);
  REQUIRE(find_route(machine, GpuId{1}, GpuId{0}).route_class == RouteClass::Nvlink);
  for (Link& link : machine.links) link.bytes_per_second[0] = link.bytes_per_second[1] = 0;
  const Route none = find_route(machine, GpuId{0}, GpuId{1});
  REQUIRE(none.route_class == RouteClass::None);
  REQUIRE(none.hops.empty());
  REQUIRE(none.bytes_per_second == 0);
}

TEST_CASE("inside a host no route goes out over the network and back", "[topology]") {
  const Machine machine = parse_machine("2 sockets, 2 gpus, pcie 60 GB/s, 2 hosts");
  // The socket link (40 GB/s) is slower than the network (50 GB/s).
  REQUIRE(find_route(machine, GpuId{0}, GpuId{1}).route_class == RouteClass::AcrossSockets);
}

TEST_CASE("the route back is the route there reversed", "[topology]") {
  const Machine machine = parse_machine("2 sockets, 4 gpus, nvlink, 2 hosts");
  std::vector<Node> nodes;
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i) nodes.push_back(GpuId{i});
  for (std::uint32_t i = 0; i < machine.memories.size(); ++i) nodes.push_back(MemoryId{i});
  const RouteFinder finder(machine);
  for (const Node a : nodes)
    for (const Node b : nodes) REQUIRE(reversed(finder.find(a, b)) == finder.find(b, a));
}

TEST_CASE("a node the machine has not is refused by name", "[topology]") {
  const Machine machine = parse_machine("1 socket, 2 gpus");
  REQUIRE_THROWS_WITH(find_route(machine, GpuId{0}, GpuId{7}),
                      contains_text("gpu7") && contains_text("2"));
}
