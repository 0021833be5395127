#include <chrono>
#include <ctime>
#include <iostream>
#include <set>

#include "support/catch.hpp"
#include "topology/corpus.hpp"
#include "topology/discover.hpp"
#include "topology/import.hpp"
#include "topology/route_finder.hpp"
#include "topology/route_table.hpp"

using namespace weft;

namespace {

/// Time this process spent computing: what is timed here has one thread, and other work on the
/// machine must not count.
class CpuTimer {
 public:
  [[nodiscard]] double seconds() const {
    return static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC;
  }

 private:
  std::clock_t begin_ = std::clock();
};

std::vector<Node> devices_and_memories(const Machine& machine) {
  std::vector<Node> nodes;
  for (std::uint32_t i = 0; i < machine.sockets.size(); ++i) nodes.push_back(SocketId{i});
  for (std::uint32_t i = 0; i < machine.memories.size(); ++i) nodes.push_back(MemoryId{i});
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i) nodes.push_back(GpuId{i});
  return nodes;
}

void check_route(const Machine& machine, const RouteTable& table, bool is_symmetric, std::size_t i,
                 std::size_t j) {
  const Route route = table.route(i, j);
  const Node from = table.ends()[i], to = table.ends()[j];
  INFO(to_string(from) << " to " << to_string(to));
  if (route.route_class == RouteClass::None) {
    CHECK(route.hops.empty());
    return;
  }
  // Hops join on to each other, and the figures are theirs.
  const std::vector<Node> nodes = nodes_of(machine, route);
  double slowest = std::numeric_limits<double>::infinity();
  std::chrono::nanoseconds latency{0};
  for (std::size_t h = 0; h < route.hops.size(); ++h) {
    const Link& link = machine.links[route.hops[h].link.value];
    slowest = std::min(slowest, link.bytes_per_second[route.hops[h].forward ? 0 : 1]);
    latency += link.latency;
    const bool is_last = h + 1 == route.hops.size();
    if (!is_last) {
      // A GPU that works in host memory stands at that memory, which may be passed.
      const Node passed = nodes[h + 1];
      if (passed.kind == NodeKind::Gpu) {
        const MemoryId memory = machine.gpus[passed.index].memory;
        CHECK(machine.memories[memory.value].kind != MemoryKind::Gpu);
      }
      CHECK(passed.kind != NodeKind::Disk);
    }
  }
  CHECK(route.bytes_per_second == slowest);
  CHECK(route.latency == latency);
  CHECK(std::set<Node>(nodes.begin(), nodes.end()).size() == nodes.size());
  if (!is_symmetric) return;
  // There and back are the same where links are.
  CHECK(table.route_class(j, i) == route.route_class);
  CHECK(table.bytes_per_second(j, i) == route.bytes_per_second);
}

void check_machine_routes(const Machine& machine) {
  const RouteTable table(machine, devices_and_memories(machine));
  bool all_reached = true;
  const bool is_symmetric = RouteFinder(machine).is_symmetric();
  const std::size_t count = table.ends().size();
  // All pairs of a small machine; of a large one every seventh row.
  for (std::size_t i = 0; i<count; i += count> 100 ? 7 : 1)
    for (std::size_t j = 0; j < count; ++j) {
      check_route(machine, table, is_symmetric, i, j);
      all_reached &= table.route_class(i, j) != RouteClass::None;
    }
  bool is_warned = false;
  for (const Warning& warning : machine.warnings) is_warned |= warning.code == "not_connected";
  CHECK((all_reached || is_warned));
}

}  // namespace

TEST_CASE("routes of every captured topology are sound, symmetric and reach everything",
          "[topology]") {
  for (const std::string& file : corpus::good_files()) {
    INFO(file);
    check_machine_routes(load_machine(file));
  }
}

TEST_CASE("routes of synthetic machines are sound and symmetric", "[topology]") {
  for (const char* description :
       {"1 socket", "2 sockets x 4 cores, 4 gpus", "2 sockets, 8 gpus, nvlink", "4 sockets, 4 gpus",
        "2 sockets, 2 gpus, 4 hosts", "1 socket, 3 gpus, nvlink 10 GB/s, 2 hosts"}) {
    INFO(description);
    check_machine_routes(parse_machine(description));
  }
}

TEST_CASE("a route table holds what find_route gives", "[topology]") {
  const Machine machine = parse_machine("2 sockets, 4 gpus, nvlink, 2 hosts");
  const RouteTable table(machine, devices_and_memories(machine));
  const RouteFinder finder(machine);
  for (std::size_t i = 0; i < table.ends().size(); ++i)
    for (std::size_t j = 0; j < table.ends().size(); ++j)
      CHECK(table.route(i, j) == finder.find(table.ends()[i], table.ends()[j]));
}

TEST_CASE("routes that share a hop in one direction are found", "[topology]") {
  const Machine machine = parse_machine("1 socket, 2 gpus");
  const Route a = find_route(machine, MemoryId{0}, GpuId{0});
  const Route b = find_route(machine, MemoryId{0}, GpuId{1});
  const Route back = find_route(machine, GpuId{1}, MemoryId{0});
  REQUIRE(shared_hops(a, b).size() == 2);  // out of the memory, into the host bridge
  REQUIRE(shared_hops(a, back).empty());   // full duplex
  const RouteTable table(machine, {MemoryId{0}, GpuId{0}, GpuId{1}});
  const auto pairs = table.routes_over(a.hops.front());
  REQUIRE(pairs == std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}, {0, 2}});
  REQUIRE(table.routes_over({a.hops.front().link, !a.hops.front().forward}) ==
          std::vector<std::pair<std::size_t, std::size_t>>{{1, 0}, {2, 0}});
}

TEST_CASE("all pairs of 1,024 GPUs on 128 hosts are routed within their second", "[topology]") {
  const Machine machine = parse_machine("2 sockets x 48 cores, 8 gpus, nvlink, 128 hosts");
  std::vector<Node> gpus;
  for (std::uint32_t i = 0; i < machine.gpus.size(); ++i) gpus.push_back(GpuId{i});
  REQUIRE(gpus.size() == 1024);
  const CpuTimer timer;
  const RouteTable table(machine, gpus);
  const double seconds = timer.seconds();
  std::cout << "all pairs of 1,024 GPUs: " << seconds * 1e3 << " ms\n";
  CHECK(table.route_class(0, 7) == RouteClass::Nvlink);
  CHECK(table.route_class(0, 1023) == RouteClass::Network);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(seconds < 1.0);
#endif
}

TEST_CASE("import and routes of the largest captured file take at most 50 ms", "[topology]") {
  std::string largest;
  std::uintmax_t size = 0;
  for (const std::string& file : corpus::good_files())
    if (std::filesystem::file_size(file) > size) {
      size = std::filesystem::file_size(file);
      largest = file;
    }
  if (largest.empty()) return;
  double best = 1e9;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const CpuTimer timer;
    const Machine machine = load_machine(largest);
    const RouteTable table(machine, devices_and_memories(machine));
    best = std::min(best, timer.seconds());
  }
  std::cout << "import and routes of " << largest << ": " << best * 1e3 << " ms\n";
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(best < 0.05);
#endif
}
