#include "topology/import.hpp"

#include <set>

#include "support/catch.hpp"
#include "topology/machine_check.hpp"
#include "topology/machine_file.hpp"
#include "topology/route.hpp"
#include "topology/samples.hpp"

using namespace weft;

namespace {

std::string import_error(const std::string& text) {
  try {
    import_machine(text, "sample");
  } catch (const TopologyError& error) {
    return error.what();
  }
  return {};
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

std::set<std::string> codes_of(const Machine& machine) {
  std::set<std::string> codes;
  for (const Warning& warning : machine.warnings) codes.insert(warning.code);
  return codes;
}

}  // namespace

TEST_CASE("a text is recognised by its content", "[topology]") {
  CHECK(recognise(samples::kHwlocV2, "x") == MachineFormat::HwlocXml);
  CHECK(recognise(std::string("\xef\xbb\xbf<!-- <system> -->\n") + samples::kHwlocV1, "x") ==
        MachineFormat::HwlocXml);
  CHECK(recognise(samples::kNccl, "x") == MachineFormat::NcclXml);
  CHECK(recognise(samples::kSmi, "x") == MachineFormat::SmiMatrix);
  CHECK(recognise(samples::kMachineFile, "x") == MachineFormat::WeftJson);
  for (const char* foreign : {"", "  \n", "<html></html>", "<graphs version='1'/>", "hello", "<",
                              "<!-- no end", "12 34", "GPU", "[1]"})
    CHECK_THROWS_AS(recognise(foreign, "x"), TopologyError);
}

TEST_CASE("an hwloc export of version 2 is read", "[topology]") {
  const Machine machine = import_machine(samples::kHwlocV2, "sample");
  check_machine(machine);
  REQUIRE(machine.sockets.size() == 2);
  CHECK(machine.sockets[0].model == "Sample CPU");
  CHECK(machine.sockets[0].cores[1].pus == std::vector<std::uint32_t>{1, 3});
  CHECK(machine.sockets[0].caches == std::vector<Cache>{{3, 8388608, 1}});
  REQUIRE(machine.gpus.size() == 2);
  CHECK(machine.gpus[0].model == "NVIDIA A100-SXM4-40GB");
  CHECK(machine.gpus[0].uuid == "GPU-1");
  CHECK(machine.memories[machine.gpus[0].memory.value].bytes == std::size_t{41409536} * 1024);
  CHECK(machine.gpus[1].near == machine.sockets[1].memories);
  REQUIRE(machine.nics.size() == 1);
  CHECK(machine.nics[0].name == "mlx5_0");
  REQUIRE(machine.disks.size() == 1);
  CHECK(machine.disks[0].bytes == std::size_t{1} << 30);
  CHECK(codes_of(machine) == std::set<std::string>{"cpus_not_allowed"});
  CHECK(find_route(machine, GpuId{0}, NicId{0}).route_class == RouteClass::SameSwitch);
  const Route nvlink = find_route(machine, GpuId{0}, GpuId{1});
  CHECK(nvlink.route_class == RouteClass::Nvlink);
  CHECK(machine.links[nvlink.hops[0].link.value].width == 4);
  for (const Link& link : machine.links) {
    if (link.b == Node(GpuId{0}) && link.kind == LinkKind::Pcie) {
      CHECK(link.generation == 3);
      CHECK(link.width == 16);
      CHECK(link.provenance == Provenance::Reported);
    }
    if (link.a == Node(MemoryId{0})) CHECK(link.bytes_per_second[0] == 200e9);
    if (link.kind == LinkKind::Socket) CHECK(link.latency.count() == 110);
  }
}

TEST_CASE("an hwloc export of version 1 is read", "[topology]") {
  const Machine machine = import_machine(samples::kHwlocV1, "sample");
  check_machine(machine);
  REQUIRE(machine.sockets.size() == 1);
  CHECK(machine.sockets[0].cores.size() == 2);
  REQUIRE(machine.memories.size() == 2);
  CHECK(machine.memories[0].bytes == std::size_t{1} << 32);
  REQUIRE(machine.gpus.size() == 1);
  CHECK(machine.gpus[0].model == "Tesla K40c");
}

TEST_CASE("hardware threads outside the allowed set are left out", "[topology]") {
  const Machine machine = import_machine(
      replaced(samples::kHwlocV2, "allowed_cpuset=\"0x0000003f\"", "allowed_cpuset=\"0x00000003\""),
      "sample");
  REQUIRE(machine.sockets.size() == 1);
  CHECK(machine.sockets[0].cpus == std::vector<std::uint32_t>{0, 1});
  // The other package stays as the place of its memory and its GPU.
  CHECK(machine.gpus.size() == 2);
  CHECK(machine.memories[1].near.empty());
  CHECK(codes_of(machine).count("package_without_cores") == 1);
  CHECK(find_route(machine, MemoryId{1}, GpuId{1}).route_class == RouteClass::SameSocket);
}

TEST_CASE("sizes that cannot be are taken as unknown", "[topology]") {
  std::string text =
      replaced(samples::kHwlocV2, "value=\"1048576\"", "value=\"99999999999999999999999\"");
  text = replaced(text, "value=\"41409536\"", "value=\"18014398509481984\"");
  const Machine machine = import_machine(text, "sample");
  CHECK(machine.disks[0].bytes == 0);
  CHECK(read_machine_file(write_machine_file(machine), "copy") == machine);
}

TEST_CASE("an adapter is told by its device number where the source states no class",
          "[topology]") {
  const std::string nic = "class=\"0x020700\" vendor=\"0x15b3\" device=\"0x101b\"";
  const std::string net = samples::kNccl;
  const std::size_t begin = net.find("<nic>"), end = net.find("</nic>") + 6;
  std::string text = net.substr(0, begin) + net.substr(end);
  const auto nics = [&](const std::string& ids) {
    return import_machine(replaced(text.c_str(), nic, ids), "sample").nics.size();
  };
  CHECK(nics("class=\"\" vendor=\"0x1d0f\" device=\"0xefa2\"") == 1);
  CHECK(nics("vendor=\"0x1d0f\" device=\"0xefa0\"") == 1);
  CHECK(nics("vendor=\"0x1d0f\" device=\"0x8061\"") == 0);
  CHECK(nics("vendor=\"0x15b3\" device=\"0xefa0\"") == 0);
}

TEST_CASE("an NCCL topology is read in NUMA order", "[topology]") {
  const Machine machine = import_machine(samples::kNccl, "sample");
  check_machine(machine);
  REQUIRE(machine.sockets.size() == 2);
  CHECK(machine.sockets[0].cpus == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(machine.sockets[1].cpus.front() == 32);
  REQUIRE(machine.gpus.size() == 2);
  CHECK(machine.gpus[0].pci->bus == 3);
  CHECK(machine.nics.size() == 1);
  CHECK(codes_of(machine) == std::set<std::string>{"packages_unknown", "virtual_nets"});
  const Route route = find_route(machine, GpuId{0}, GpuId{1});
  CHECK(route.route_class == RouteClass::Nvlink);
  CHECK(route.bytes_per_second == 100e9);
}

TEST_CASE("two hosts in one NCCL topology are kept apart", "[topology]") {
  std::string text =
      replaced(samples::kNccl, "<cpu numaid=\"1\"", "<cpu host_hash=\"0x2\" numaid=\"1\"");
  text = replaced(text, "affinity=\"000000ff,00000000\"", "affinity=\"0000000f\"");
  const Machine machine = import_machine(text, "sample");
  check_machine(machine);
  for (const Link& link : machine.links) CHECK(link.kind != LinkKind::Socket);
  CHECK(codes_of(machine).count("not_connected") == 1);
}

TEST_CASE("a topo -m matrix is read through tabs, colours and legends", "[topology]") {
  const Machine machine = import_machine(samples::kSmi, "sample");
  check_machine(machine);
  REQUIRE(machine.gpus.size() == 2);
  CHECK(machine.sockets[1].cpus == std::vector<std::uint32_t>{4, 5});
  CHECK(machine.nics[0].name == "mlx5_0");
  CHECK(find_route(machine, GpuId{0}, GpuId{1}).bytes_per_second == 100e9);
  CHECK(find_route(machine, GpuId{0}, NicId{0}).route_class == RouteClass::SameSwitch);
}

TEST_CASE("rows and columns of a matrix may be missing or out of order", "[topology]") {
  const Machine machine = import_machine(
      "# shell comment\r\n#      GPU1 GPU0 mlx5_0  CPU Affinity NUMA Affinity\r\n"
      "# mlx5_0 PHB SYS X\r\n"
      "# GPU1   X   NV2 PHB     8-15         1\r\n"
      "# GPU0   NV2 X   SYS     0-7          0\r\n\r\n",
      "sample");
  REQUIRE(machine.gpus.size() == 2);
  CHECK(machine.sockets[0].cpus.front() == 0);
  CHECK(find_route(machine, GpuId{1}, NicId{0}).route_class == RouteClass::SameHostBridge);
  CHECK(find_route(machine, GpuId{0}, NicId{0}).route_class == RouteClass::AcrossSockets);
}

TEST_CASE("a broken text is refused with source, place and expectation", "[topology]") {
  const std::string v2 = samples::kHwlocV2, nccl = samples::kNccl, smi = samples::kSmi;
  const std::string cases[] = {
      v2.substr(0, v2.size() / 2),
      replaced(v2, "type=\"PU\" os_index=\"0\"", "type=\"PU\""),
      replaced(v2, "type=\"PU\" os_index=\"0\"", "type=\"PU\" os_index=\"4294967295\""),
      replaced(v2, "type=\"PU\" os_index=\"0\"", "type=\"PU\" os_index=\"1\""),
      replaced(v2, "pci_busid=\"0000:03:00.0\"", "pci_busid=\"zz\""),
      replaced(v2, "allowed_cpuset=\"0x0000003f\"", "allowed_cpuset=\"0xzz\""),
      replaced(v2, "allowed_cpuset=\"0x0000003f\"", "allowed_cpuset=\"0x0\""),
      replaced(v2, "local_memory=\"1073741824\"", "local_memory=\"-1\""),
      "<topology version=\"2.0\"></topology>",
      "<topology><object type=\"Machine\"/><object type=\"Machine\"/></topology>",
      nccl.substr(0, nccl.size() / 2),
      replaced(nccl, "affinity=\"0000000f\"", "affinity=\"xyz\""),
      replaced(nccl, "busid=\"0000:03:00.0\"", "busid=\"\""),
      replaced(nccl, "count=\"4\"", "count=\"many\""),
      "<system version=\"1\"/>",
      replaced(smi, "NV4", "NV99"),
      replaced(smi, "PIX", "QQQ"),
      replaced(smi, "0-3", "-3,4"),
      replaced(smi, "GPU1\tNV4\t X \tSYS\t4-5\t1\t\tN/A\n", ""),
      replaced(smi, "GPU1\tNV4", "GPU0\tNV4"),
      replaced(smi, "GPU0\tGPU1\tNIC0", "GPU0\tGPU1\tGPU1"),
      replaced(smi, "0-3", "0-1000000"),
  };
  for (const std::string& text : cases) {
    INFO(text.substr(0, 2000));
    const std::string error = import_error(text);
    CHECK(error.find("sample: ") == 0);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE("texts made to exhaust the reader are refused", "[topology]") {
  std::string deep = "<topology>", many = "<system version=\"1\"><cpu numaid=\"0\" affinity=\"1\">";
  for (int i = 0; i < 100'000; ++i) deep += "<object type=\"Group\">";
  CHECK_FALSE(import_error(deep).empty());
  std::string closed = "<topology>";
  for (int i = 0; i < 300; ++i) closed += "<object type=\"Machine\">";
  for (int i = 0; i < 300; ++i) closed += "</object>";
  CHECK(import_error(closed + "</topology>").find("nested") != std::string::npos);
  for (int i = 0; i < 1'000'100; ++i) many += "<a/>";
  CHECK(import_error(many + "</cpu></system>").find("more than") != std::string::npos);
  CHECK_FALSE(import_error(std::string(1'000'000, '[')).empty());
  CHECK_FALSE(import_error("{\"kind\":" + std::string(1'000'000, '[')).empty());
  std::string entity =
      "<!DOCTYPE topology [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b "
      "\"&a;&a;&a;\">]><topology>&b;</topology>";
  CHECK_FALSE(import_error(entity).empty());
}

TEST_CASE("no host has as many places or hardware threads as these texts say", "[topology]") {
  // Every two places are joined: without a limit these few kilobytes would be millions of links.
  std::string cpus = "<system version=\"1\">", header, rows;
  for (int i = 0; i < 3000; ++i) cpus += "<cpu numaid=\"" + std::to_string(i) + "\"/>";
  CHECK_THAT(import_error(cpus + "</system>"), contains_text("more than 256 packages"));
  for (int i = 0; i < 300; ++i) {
    header += "GPU" + std::to_string(i) + " ";
    rows += "GPU" + std::to_string(i);
    for (int k = 0; k < 300; ++k) rows += i == k ? " X" : " SYS";
    rows += " " + std::to_string(i) + " " + std::to_string(i) + "\n";
  }
  CHECK_THAT(import_error(header + "CPU Affinity NUMA Affinity\n" + rows),
             contains_text("more than 256 packages"));
  const std::string mask(20'000, 'f');
  std::string words = "ffffffff";
  for (int i = 0; i < 3000; ++i) words += ",ffffffff";
  for (const std::string& bits : {mask, words})
    CHECK_THAT(import_error("<system version=\"1\"><cpu numaid=\"0\" affinity=\"" + bits +
                            "\"/></system>"),
               contains_text("affinity=") && contains_text("at most 65536 bits"));
}

TEST_CASE("a file that cannot be read says so", "[topology]") {
  CHECK_THROWS_WITH(load_machine("/nonexistent/machine.json"),
                    contains_text("/nonexistent/machine.json") && contains_text("opened"));
  CHECK_THROWS_WITH(load_machine("/"), contains_text("a folder"));
}
