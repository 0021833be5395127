#include <sched.h>

#include <algorithm>

#include "support/catch.hpp"
#include "topology/discover.hpp"
#include "topology/route.hpp"

using namespace weft;

TEST_CASE("the live machine has the hardware threads this process may use", "[topology]") {
  const Machine machine = discover();
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  std::vector<std::uint32_t> cpus;
  for (const Socket& socket : machine.sockets) {
    REQUIRE_FALSE(socket.cpus.empty());
    std::size_t in_cores = 0;
    for (const Core& core : socket.cores) in_cores += core.pus.size();
    REQUIRE(in_cores == socket.cpus.size());
    cpus.insert(cpus.end(), socket.cpus.begin(), socket.cpus.end());
  }
  std::sort(cpus.begin(), cpus.end());
  REQUIRE(std::adjacent_find(cpus.begin(), cpus.end()) == cpus.end());
  for (const std::uint32_t cpu : cpus) REQUIRE(CPU_ISSET(cpu, &set));
  REQUIRE(cpus.size() == static_cast<std::size_t>(CPU_COUNT(&set)));
}

TEST_CASE("the live machine has a host memory that every socket reaches", "[topology]") {
  const Machine machine = discover();
  REQUIRE_FALSE(machine.memories.empty());
  for (std::uint32_t s = 0; s < machine.sockets.size(); ++s)
    REQUIRE(find_route(machine, SocketId{s}, MemoryId{0}).route_class != RouteClass::None);
}

TEST_CASE("a process bound to one hardware thread sees one", "[topology]") {
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  const Machine machine = discover();
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
  REQUIRE(machine.sockets.size() == 1);
  REQUIRE(machine.sockets[0].cpus.size() == 1);
}
