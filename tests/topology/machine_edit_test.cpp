#include "topology/machine_edit.hpp"

#include <algorithm>

#include "support/catch.hpp"
#include "topology/discover.hpp"
#include "topology/machine_check.hpp"
#include "topology/machine_file.hpp"
#include "topology/machine_match.hpp"
#include "topology/route.hpp"
#include "topology/shipped.hpp"

using namespace weft;

namespace {

std::size_t joining(const Machine& machine, Node a, Node b) {
  return static_cast<std::size_t>(
      std::count_if(machine.links.begin(), machine.links.end(), [&](const Link& link) {
        return (link.a == a && link.b == b) || (link.a == b && link.b == a);
      }));
}

std::size_t memory_of(const Machine& machine, std::uint32_t gpu) {
  return machine.memories[machine.gpus[gpu].memory.value].bytes;
}

}  // namespace

TEST_CASE("a pattern fits whole texts", "[topology]") {
  CHECK(fits("gpu*", "gpu12"));
  CHECK(fits("*", ""));
  CHECK(fits("gpu1*-gpu*3", "gpu1-gpu33"));
  CHECK(fits("**a", "aaa"));
  CHECK_FALSE(fits("gpu", "gpu1"));
  CHECK_FALSE(fits("g*x", "gpu1"));
  CHECK_FALSE(fits("", "a"));
}

TEST_CASE("a pattern sets a figure of all that it fits", "[topology]") {
  const Machine machine = parse_machine("2 sockets x 2 cores, 4 gpus, nvlink");
  const Machine cut = with_value(machine, "link:nvlink*.bytes_per_second=0");
  for (const Link& link : cut.links)
    CHECK((link.bytes_per_second[0] == 0) == (link.kind == LinkKind::Nvlink));
  CHECK(find_route(cut, GpuId{0}, GpuId{1}).route_class != RouteClass::Nvlink);

  const Machine some = with_value(machine, "link:gpu0-gpu*.bytes_per_second=1 GB/s");
  CHECK(std::count_if(some.links.begin(), some.links.end(),
                      [](const Link& link) { return link.bytes_per_second[0] == 1e9; }) == 3);
  const Machine small = with_value(machine, "gpu*.memory.bytes=40GB");
  for (std::uint32_t g = 0; g < 4; ++g) CHECK(memory_of(small, g) == std::size_t{40} << 30);
  CHECK(small.memories[0] == machine.memories[0]);
}

TEST_CASE("a GPU's memory is reached through the GPU", "[topology]") {
  const Machine machine = parse_machine("1 socket x 2 cores, 2 gpus");
  const Machine changed = with_value(machine, "gpu1.memory.bytes=40GB");
  CHECK(memory_of(changed, 1) == std::size_t{40} << 30);
  CHECK(memory_of(changed, 0) == memory_of(machine, 0));
}

TEST_CASE("an edit that fits nothing says what there is", "[topology]") {
  const Machine machine = parse_machine("1 socket x 2 cores, 2 gpus");
  CHECK_THROWS_WITH(with_value(machine, "link:nvlink*.bytes_per_second=0"),
                    contains_text("link:nvlink*") && contains_text("kind bus, pcie"));
  CHECK_THROWS_WITH(with_value(machine, "nic*.name=x"),
                    contains_text("nic*") && contains_text("gpu0 to gpu1"));
  CHECK_THROWS_WITH(with_value(machine, "gpu2.memory.bytes=1 GB"),
                    contains_text("gpu2") && contains_text("the machine has 2"));
  CHECK_THROWS_WITH(with_value(machine, "socket0.memory.bytes=1 GB"),
                    contains_text("socket0 has no memory of its own"));
  CHECK_THROWS_WITH(with_value(machine, "gpu0.memory.colour=red"), contains_text("colour"));
  CHECK_THROWS_AS(without(machine, "link:xgmi"), TopologyError);
}

TEST_CASE("all that a pattern fits is removed", "[topology]") {
  const Machine machine = parse_machine("1 socket x 2 cores, 3 gpus, nvlink");
  const Machine apart = without(machine, "link:nvlink");
  CHECK(apart.links.size() == machine.links.size() - 3);
  CHECK(without(machine, "gpu*").gpus.empty());
  CHECK(without(machine, "gpu*").memories.size() == 1);
}

TEST_CASE("a GPU is added with the links of its model", "[topology]") {
  const Machine machine = parse_machine("2 sockets x 2 cores, 2 gpus, nvlink, gpu memory 24 GB");
  const Machine more = with_added(machine, "gpu like gpu0");
  CHECK_NOTHROW(check_machine(more));
  REQUIRE(more.gpus.size() == 3);
  CHECK(memory_of(more, 2) == std::size_t{24} << 30);
  CHECK(more.memories[more.gpus[2].memory.value].gpu == GpuId{2});
  CHECK(more.gpus[2].near == more.gpus[0].near);
  // Each two were joined: so they are still.
  for (std::uint32_t g = 0; g < 2; ++g) CHECK(joining(more, GpuId{g}, GpuId{2}) == 1);
  CHECK(find_route(more, MemoryId{0}, GpuId{2}).bytes_per_second ==
        find_route(more, MemoryId{0}, GpuId{0}).bytes_per_second);
  CHECK(more.warnings.empty());
  CHECK(read_machine_file(write_machine_file(more), "copy") == more);

  const Machine other = with_added(machine, "gpu like gpu0 on socket1");
  CHECK(other.gpus[2].near == machine.sockets[1].memories);
  CHECK(find_route(other, machine.sockets[1].memories[0], GpuId{2}).route_class ==
        find_route(machine, machine.sockets[0].memories[0], GpuId{0}).route_class);
  CHECK(with_added(machine, "gpu like gpu0 on socket0") == more);
}

TEST_CASE("a GPU is added to shipped machines", "[topology]") {
  const Machine a100 = with_added(machine_from("dgx-a100"), "gpu like gpu0 on socket1");
  CHECK(a100.gpus.size() == 9);
  CHECK(find_route(a100, GpuId{8}, GpuId{0}).bytes_per_second == 300e9);
  const Machine cube = with_added(machine_from("dgx-1v"), "gpu like gpu0");
  CHECK(joining(cube, GpuId{8}, GpuId{3}) == 1);
  CHECK(joining(cube, GpuId{8}, GpuId{0}) == 0);
  const Machine summit = with_added(machine_from("summit-node"), "gpu like gpu0 on socket1");
  CHECK(joining(summit, GpuId{6}, SocketId{1}) == 1);
  CHECK(joining(summit, GpuId{6}, SocketId{0}) == 0);
  const Machine laptop = with_added(machine_from("laptop"), "gpu like gpu0");
  CHECK(laptop.gpus[1].memory == laptop.gpus[0].memory);
  for (const std::string& name : shipped_machines())
    CHECK_NOTHROW(check_machine(with_added(machine_from(name), "gpu like gpu0")));
}

TEST_CASE("a socket without host bridge gets one for an added GPU", "[topology]") {
  const Machine machine = parse_machine("2 sockets x 2 cores, 1 gpu");
  const Machine more = with_added(machine, "gpu like gpu0 on socket1");
  CHECK(more.hubs.size() == machine.hubs.size() + 1);
  CHECK(more.hubs.back().near == machine.sockets[1].memories);
  CHECK(more.warnings.empty());
}

TEST_CASE("a link and a socket are added like others", "[topology]") {
  const Machine machine = parse_machine("2 sockets x 2 cores, 2 gpus, nvlink");
  const auto nvlink = find_things(machine, "link:nvlink").links.at(0);
  const std::string name = "link" + std::to_string(nvlink.value);
  const Machine linked = with_added(machine, "link like " + name + " from gpu1 to socket0");
  CHECK(linked.links.size() == machine.links.size() + 1);
  CHECK(linked.links.back().a == Node(GpuId{1}));
  CHECK(linked.links.back().b == Node(SocketId{0}));
  CHECK(linked.links.back().bytes_per_second[0] == machine.links[nvlink.value].bytes_per_second[0]);

  const Machine three = with_added(machine, "socket like socket0");
  CHECK_NOTHROW(check_machine(three));
  REQUIRE(three.sockets.size() == 3);
  CHECK(three.sockets[2].cpus == std::vector<std::uint32_t>{4, 5});
  CHECK(three.memories[three.sockets[2].memories.at(0).value].cpus == three.sockets[2].cpus);
  for (std::uint32_t s = 0; s < 2; ++s) CHECK(joining(three, SocketId{s}, SocketId{2}) == 1);
  CHECK(three.warnings.empty());
  CHECK(with_added(parse_machine("1 socket x 2 cores"), "socket like socket0").sockets.size() == 2);
  for (const std::string& shipped : shipped_machines())
    CHECK_NOTHROW(check_machine(with_added(machine_from(shipped), "socket like socket0")));
}

TEST_CASE("an addition that is not understood says what would be", "[topology]") {
  const Machine machine = parse_machine("1 socket x 2 cores, 2 gpus");
  for (const char* bad :
       {"", "gpu", "gpu like", "gpu like gpu9", "gpu like socket0", "gpu as gpu0",
        "gpu like gpu0 on", "gpu like gpu0 on gpu1", "gpu like gpu0 on socket7", "nic like nic0",
        "link like link0 from gpu0", "link like link0 from gpu0 to", "link like gpu0 from a to b",
        "link like link99 from gpu0 to gpu1", "link like link0 from gpu0 to gpu9",
        "link like link0 from gpu0 to gpu0", "socket like gpu0",
        "socket like socket0 on socket0"}) {
    INFO(bad);
    CHECK_THROWS_AS(with_added(machine, bad), TopologyError);
  }
  CHECK_THROWS_WITH(with_added(machine, "gpu likes gpu0"), contains_text("gpu like gpu0 [on"));
  CHECK_THROWS_WITH(with_added(machine, "gpu like gpu9"), contains_text("the machine has 2"));
}

TEST_CASE("things are removed, then added, then set", "[topology]") {
  const Machine machine = parse_machine("1 socket x 2 cores, 2 gpus");
  const Machine changed = edited(
      machine,
      {.remove = {"gpu1"}, .add = {"gpu like gpu0", "gpu like gpu1"}, .set = {"gpu2.model=third"}});
  REQUIRE(changed.gpus.size() == 3);
  CHECK(changed.gpus[2].model == "third");
  CHECK(edited(machine, {}) == machine);
}
