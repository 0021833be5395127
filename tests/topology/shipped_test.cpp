#include "topology/shipped.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "topology/doctor.hpp"
#include "topology/machine_check.hpp"
#include "topology/machine_diff.hpp"
#include "topology/machine_edit.hpp"
#include "topology/machine_file.hpp"
#include "topology/measurements.hpp"
#include "topology/render.hpp"
#include "topology/route.hpp"

using namespace weft;

TEST_CASE("every shipped machine is sound, connected and names its sources", "[topology]") {
  const std::vector<std::string> names = shipped_machines();
  CHECK(names == std::vector<std::string>{"dgx-1v", "dgx-a100", "frontier-node", "gh200",
                                          "h100-cluster-4", "hgx-h100", "laptop", "summit-node",
                                          "workstation-2gpu"});
  for (const std::string& name : names) {
    INFO(name);
    const Machine machine = machine_from(name);
    CHECK_NOTHROW(check_machine(machine));
    CHECK(machine.source == name);
    CHECK(read_machine_file(write_machine_file(machine), "") == machine);
    CHECK_FALSE(is_broken(diagnose_machine(machine)));
    CHECK_FALSE(nlohmann::json::parse(shipped_machine_file(name))["sources"].empty());
    for (std::uint32_t g = 0; g < machine.gpus.size(); ++g)
      CHECK(find_route(machine, MemoryId{0}, GpuId{g}).route_class != RouteClass::None);
  }
}

TEST_CASE("routes of shipped machines are those of their data sheets", "[topology]") {
  const auto route = [](const char* name, Node a, Node b) {
    return find_route(machine_from(name), a, b);
  };
  CHECK(route("gh200", MemoryId{0}, GpuId{0}).route_class == RouteClass::Nvlink);
  CHECK(route("gh200", MemoryId{0}, GpuId{0}).bytes_per_second == 384e9);
  CHECK(route("summit-node", GpuId{0}, GpuId{2}).bytes_per_second == 50e9);
  CHECK(route("summit-node", GpuId{0}, GpuId{3}).route_class == RouteClass::AcrossSockets);
  CHECK(route("frontier-node", GpuId{0}, GpuId{1}).bytes_per_second == 200e9);
  CHECK(route("frontier-node", GpuId{0}, GpuId{6}).bytes_per_second == 100e9);
  CHECK(route("hgx-h100", GpuId{0}, GpuId{7}).bytes_per_second == 450e9);
  CHECK(route("hgx-h100", GpuId{0}, NicId{0}).route_class == RouteClass::SameSwitch);
  CHECK(route("h100-cluster-4", GpuId{0}, GpuId{8}).route_class == RouteClass::Network);
  CHECK(route("laptop", GpuId{0}, MemoryId{0}).route_class == RouteClass::SameMemory);
}

TEST_CASE("a machine is named by file, name or description", "[topology]") {
  CHECK(machine_from("live").source == "live");
  CHECK(machine_from("2 sockets x 2 cores, 1 gpu").gpus.size() == 1);
  CHECK_THROWS_WITH(machine_from("dgx-b300"),
                    contains_text("dgx-b300") && contains_text("dgx-a100"));
}

TEST_CASE("differences are told one by one", "[topology]") {
  const Machine machine = machine_from("workstation-2gpu");
  CHECK(differences(machine, machine).empty());
  const Machine changed = with_value(without(machine, "gpu0-gpu1"), "mem0.bytes=128 GB");
  const auto lines = differences(machine, changed);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Catch::Matchers::StartsWith("mem0.bytes: "));
  CHECK_THAT(lines[1], Catch::Matchers::StartsWith("- gpu0-gpu1 nvlink"));
  CHECK_THAT(differences(machine, without(machine, "gpu1"))[0],
             Catch::Matchers::StartsWith("- mem2"));
}

TEST_CASE("measurements belong to the machine they were made on", "[topology]") {
  const Machine machine = machine_from("workstation-2gpu");
  Measurements measurements;
  measurements.fingerprint = fingerprint(machine);
  measurements.links.push_back(
      {LinkKind::Bus, MemoryId{0}, SocketId{0}, {{150e9, 90e9}, {}, std::chrono::nanoseconds(95)}});
  const Measurements copy = read_measurements(write_measurements(measurements), "copy");
  const Machine measured = with_measurements(machine, copy);
  CHECK(measured.links[0].bytes_per_second[0] == 150e9);
  CHECK(measured.links[0].provenance == Provenance::Measured);
  CHECK(fingerprint(measured) == fingerprint(machine));
  CHECK(fingerprint(without(machine, "gpu1")) != fingerprint(machine));
  CHECK_THROWS_WITH(with_measurements(machine_from("laptop"), copy), contains_text("--measure"));
  for (const char* bad : {"", "{}", "[", "{\"kind\":\"weft-measurements\",\"version\":1}"})
    CHECK_THROWS_AS(read_measurements(bad, "bad"), TopologyError);
}

TEST_CASE("pictures of all shipped machines are well formed", "[topology]") {
  for (const std::string& name : shipped_machines()) {
    INFO(name);
    const Machine machine = machine_from(name);
    const std::string svg = render_svg(machine);
    CHECK_THAT(svg, Catch::Matchers::StartsWith("<svg ") && Catch::Matchers::EndsWith("</svg>\n"));
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("-inf") == std::string::npos);
    // Every GPU of a single host is drawn.
    if (machine.gpus.size() <= 8)
      for (std::uint32_t g = 0; g < machine.gpus.size(); ++g)
        CHECK(svg.find(">gpu" + std::to_string(g) + "<") != std::string::npos);
    CHECK_THAT(render_dot(machine),
               Catch::Matchers::StartsWith("graph machine {") && Catch::Matchers::EndsWith("}\n"));
  }
  CHECK(render_svg(Machine{}).size() > 100);
}
