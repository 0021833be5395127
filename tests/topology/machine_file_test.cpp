#include "topology/machine_file.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "topology/discover.hpp"
#include "topology/import.hpp"
#include "topology/samples.hpp"

using namespace weft;

namespace {

std::string file_error(const std::string& text) {
  try {
    read_machine_file(text, "sample");
  } catch (const TopologyError& error) {
    return error.what();
  }
  return {};
}

std::string edited_text(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

}  // namespace

TEST_CASE("a machine survives its own file", "[topology]") {
  for (const Machine& machine :
       {discover(), parse_machine("2 sockets x 3 cores x 2 threads, 5 gpus, nvlink, 3 hosts"),
        import_machine(samples::kHwlocV2, "v2"), import_machine(samples::kHwlocV1, "v1"),
        import_machine(samples::kNccl, "nccl"), import_machine(samples::kSmi, "smi"), Machine{}}) {
    INFO(machine.source);
    const Machine copy = read_machine_file(write_machine_file(machine), "another name");
    CHECK(copy == machine);
  }
}

TEST_CASE("odd figures survive too", "[topology]") {
  Machine machine = parse_machine("1 socket, 1 gpu");
  machine.source = "quotes \" and \\ and ünïcödé";
  machine.links[0].bytes_per_second[0] = 1.0 / 3.0;
  machine.links[0].bytes_per_second[1] = 0;
  machine.links[1].provenance = Provenance::Measured;
  machine.sockets[0].cores[0].efficiency = 3;
  machine.gpus[0].pci = PciAddress{0x10000, 0xff, 0x1f, 7};
  machine.gpus[0].unused_reason = "no driver";
  machine.memories[0].bytes = std::size_t{1} << 59;
  CHECK(read_machine_file(write_machine_file(machine), "") == machine);
}

TEST_CASE("the document has the keys that others rely on", "[topology]") {
  const auto json =
      nlohmann::json::parse(write_machine_file(import_machine(samples::kHwlocV2, "sample")));
  CHECK(json["kind"] == "weft-machine");
  CHECK(json["source"] == "sample");
  CHECK(json["sockets"][0]["id"] == "socket0");
  CHECK(json["sockets"][0]["cpus"] == "0-3");
  CHECK(json["sockets"][0]["cores"] == 2);
  CHECK(json["sockets"][0]["memories"][0] == "mem0");
  CHECK(json["memories"][0]["near"][0] == "socket0");
  CHECK(json["memories"][0]["kind"] == "dram");
  CHECK(json["gpus"][0]["pci"] == "0000:03:00.0");
  CHECK(json["gpus"][0]["memory"] == "mem2");
  CHECK(json["gpus"][0]["shares_with"].empty());
  CHECK(json["nics"][0]["id"] == "nic0");
  CHECK(json["links"][0]["bytes_per_second"].size() == 2);
  CHECK(json["links"][0].contains("latency_ns"));
  CHECK(json["links"][0]["provenance"] == "reported");
  CHECK(json["warnings"][0].contains("code"));
}

TEST_CASE("a machine file may be written by hand", "[topology]") {
  const Machine machine = read_machine_file(samples::kMachineFile, "x");
  CHECK(machine.source == "sample");
  REQUIRE(machine.sockets[0].cores.size() == 4);
  CHECK(machine.sockets[0].cores[1].pus == std::vector<std::uint32_t>{1, 5});
  CHECK(machine.memories[0].bytes == std::size_t{64} << 30);
  CHECK(machine.links[0].bytes_per_second[1] == 100e9);
  CHECK(machine.links[1].bytes_per_second[1] == 20e9);
  CHECK(machine.links[1].provenance == Provenance::Measured);
}

TEST_CASE("a mistake in a machine file is named with its place", "[topology]") {
  const std::string good = samples::kMachineFile;
  const std::pair<std::string, std::string> cases[] = {
      {good.substr(0, 100), "line"},
      {edited_text(good, "\"weft-machine\"", "\"other\""), "kind"},
      {edited_text(good, "\"comment\"", "\"coment\""), "coment"},
      {edited_text(good, "\"0-7\", \"cores\"", "\"7-0\", \"cores\""), "sockets[0].cpus"},
      {edited_text(good, "\"cores\": 4", "\"cores\": 3"), "sockets[0].cores"},
      {edited_text(good, "\"64 GB\"", "\"64 sheep\""), "memories[0].bytes"},
      {edited_text(good, "\"mem1\"", "\"mem7\""), "gpus[0]"},
      {edited_text(good, "\"mem1\"", "\"gpu0\""), "gpus[0].memory"},
      {edited_text(good, "\"kind\": \"pcie\"", "\"kind\": \"pcy\""), "links[1].kind"},
      {edited_text(good, "\"id\": \"link1\"", "\"id\": \"link5\""), "links[1].id"},
      {edited_text(good, "[25e9, 20000000000]", "[25e9]"), "links[1].bytes_per_second"},
      {edited_text(good, "[25e9, 20000000000]", "-1"), "links[1].bytes_per_second"},
      {edited_text(good, "\"b\": \"gpu0\"", "\"b\": \"gpu9\""), "links[1]"},
      {edited_text(good, "\"b\": \"gpu0\"", "\"b\": \"socket0\""), "itself"},
      {edited_text(good, "17179869184", "1e99"), "memories[1].bytes"},
      {"{}", "kind"},
      {"{\"kind\": \"weft-machine\", \"version\": 9}", "version"},
      {"{\"kind\": \"weft-machine\", \"sockets\": {}}", "sockets"},
      {"{\"kind\": \"weft-machine\", \"sockets\": [1]}", "sockets[0]"},
      {"{\"kind\": \"weft-machine\", \"sockets\": [{}]}", "sockets[0]"},
      {"[", "line 1"},
  };
  for (const auto& [text, place] : cases) {
    INFO(text);
    const std::string error = file_error(text);
    CHECK(error.find("sample") != std::string::npos);
    CHECK_THAT(error, contains_text(place));
    CHECK(error.find('\n') == std::string::npos);
  }
}
