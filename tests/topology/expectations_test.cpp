#include "topology/expectations.hpp"

#include <map>
#include <set>

#include "support/catch.hpp"
#include "topology/corpus.hpp"
#include "topology/import.hpp"
#include "topology/machine_check.hpp"
#include "topology/machine_file.hpp"
#include "topology/names.hpp"

using namespace weft;

namespace {

template <class List>
std::string kinds_of(const List& items) {
  std::map<std::string, int> counts;
  for (const auto& item : items) ++counts[to_string(item.kind)];
  std::string text;
  for (const auto& [kind, count] : counts)
    text += (text.empty() ? "" : " ") + kind + ":" + std::to_string(count);
  return text;
}

std::string memories_of(const Machine& machine) {
  int counts[6] = {};
  for (const Memory& memory : machine.memories) ++counts[static_cast<int>(memory.kind)];
  std::string text;
  for (const auto kind :
       {MemoryKind::Dram, MemoryKind::Hbm, MemoryKind::Pmem, MemoryKind::Cxl, MemoryKind::Gpu})
    if (const int count = counts[static_cast<int>(kind)])
      text +=
          (text.empty() ? "" : " ") + std::string(to_string(kind)) + ":" + std::to_string(count);
  return text;
}

}  // namespace

TEST_CASE("every captured topology comes out as its expectation says", "[topology]") {
  const std::filesystem::path root = corpus::folder();
  if (root.empty()) return;
  std::set<std::string> expected;
  for (const corpus::Expectation& e : corpus::kExpectations) {
    expected.insert((root / e.file).string());
    INFO(e.file);
    const Machine machine = load_machine((root / e.file).string());
    std::size_t cores = 0, pus = 0;
    for (const Socket& socket : machine.sockets) {
      cores += socket.cores.size();
      pus += socket.cpus.size();
    }
    std::set<std::string> codes;
    for (const Warning& warning : machine.warnings) codes.insert(warning.code);
    std::string warnings;
    for (const std::string& code : codes) warnings += (warnings.empty() ? "" : " ") + code;
    CHECK(machine.sockets.size() == e.sockets);
    CHECK(cores == e.cores);
    CHECK(pus == e.pus);
    CHECK(memories_of(machine) == e.memories);
    CHECK(machine.gpus.size() == e.gpus);
    CHECK(machine.nics.size() == e.nics);
    CHECK(machine.disks.size() == e.disks);
    CHECK(kinds_of(machine.hubs) == e.hubs);
    CHECK(kinds_of(machine.links) == e.links);
    CHECK(warnings == e.warnings);
  }
  for (const std::string& file : corpus::good_files()) {
    INFO(file << " has no expectation");
    CHECK(expected.count(file) == 1);
  }
}

TEST_CASE("every captured topology is sound and survives weft's own format", "[topology]") {
  for (const std::string& file : corpus::good_files()) {
    INFO(file);
    const Machine machine = load_machine(file);
    CHECK_NOTHROW(check_machine(machine));
    CHECK(read_machine_file(write_machine_file(machine), "copy") == machine);
  }
}

TEST_CASE("every broken file is refused with one line that names it", "[topology]") {
  for (const std::string& file : corpus::files("broken")) {
    INFO(file);
    try {
      load_machine(file);
      FAIL_CHECK("was read");
    } catch (const TopologyError& error) {
      const std::string what = error.what();
      CHECK(what.find(file) == 0);
      CHECK(what.find("expected") + what.find("set NCCL") != 2 * std::string::npos);
      CHECK(what.find('\n') == std::string::npos);
    }
  }
}
