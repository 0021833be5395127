#include "actors/socket_lanes.hpp"
#include "actors/runtime.hpp"
#include "support/catch.hpp"
#include "topology/discover.hpp"

using namespace weft;

TEST_CASE("a socket's lanes are its cores, its threads or its fast cores") {
  Socket hybrid;  // two slow cores, then two fast ones with two threads each
  hybrid.cores = {{{0}, 0}, {{1}, 0}, {{2, 3}, 1}, {{4, 5}, 1}};
  using Cpus = std::vector<std::uint32_t>;
  CHECK(lane_cpus(hybrid, SocketLanes::Cores) == Cpus{2, 4, 0, 1});
  CHECK(lane_cpus(hybrid, SocketLanes::FastCores) == Cpus{2, 4});
  CHECK(lane_cpus(hybrid, SocketLanes::Threads) == Cpus{2, 4, 0, 1, 3, 5});
  CHECK(lane_cores(hybrid, SocketLanes::Threads) == 4);
  CHECK(lane_cores(hybrid, SocketLanes::FastCores) == 2);

  Socket equal;
  equal.cores = {{{0, 2}, -1}, {{1, 3}, -1}};
  CHECK(lane_cpus(equal, SocketLanes::Cores) == Cpus{0, 1});
  CHECK(lane_cpus(equal, SocketLanes::FastCores) == Cpus{0, 1});
  CHECK(lane_cpus(equal, SocketLanes::Threads) == Cpus{0, 1, 2, 3});
  CHECK(lane_cpus(Socket(), SocketLanes::Threads).empty());
}

TEST_CASE("what is no choice of lanes is refused by name") {
  CHECK(parse_socket_lanes("fast-cores") == SocketLanes::FastCores);
  CHECK_THROWS_WITH(parse_socket_lanes("all"),
                    Catch::Matchers::Contains("\"all\"") && Catch::Matchers::Contains("threads"));
}

TEST_CASE("a runtime has a lane for each thread if it is asked to") {
  for (const auto& [lanes, wanted] :
       {std::pair(SocketLanes::Cores, 2u), {SocketLanes::Threads, 4u}}) {
    RuntimeOptions options;
    options.machine = parse_machine("1 socket x 2 cores");
    options.machine->sockets[0].cores = {{{0, 2}, -1}, {{1, 3}, -1}};
    options.gpus = GpuMode::None;
    options.socket_lanes = lanes;
    const Runtime runtime(std::move(options));
    CHECK(runtime.socket(0).place().lanes.size() == wanted);
    const auto x = runtime.zeros({100}, runtime.socket(0));
    CHECK(x.to_host()[99] == 0);
  }
}
