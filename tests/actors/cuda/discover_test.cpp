#include "actors/cuda/discover.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <sstream>

#include "actors/cuda/devices.hpp"
#include "support/catch.hpp"
#include "topology/discover.hpp"
#include "topology/doctor.hpp"
#include "topology/names.hpp"
#include "topology/route.hpp"

using namespace weft;

namespace {

/// False, with a printed reason, where no GPU can be driven.
bool has_gpus(const GpuFacts& facts, std::size_t wanted = 1) {
  std::size_t shown = 0;
  for (const GpuFact& gpu : facts.gpus) shown += gpu.cuda_ordinal >= 0;
  if (shown >= wanted) return true;
  std::cout << "skipped: " << wanted << " GPU(s) wanted, " << shown << " there"
            << (facts.cuda_problem.empty() ? "" : "; " + facts.cuda_problem) << '\n';
  return false;
}

/// What this program prints about the machine when it runs with an environment.
std::string child(const std::string& environment) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  FILE* pipe = popen((environment + " '" + self + "' '[child]'").c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  char buffer[4096];
  while (const std::size_t count = fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, count);
  REQUIRE(pclose(pipe) == 0);
  return text;
}

/// GPUs a child drives: address to ordinal.
std::vector<std::pair<std::string, int>> driven(const std::string& text) {
  std::vector<std::pair<std::string, int>> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, address;
    int ordinal = -1;
    if (words >> word >> address >> ordinal && word == "GPU" && ordinal >= 0)
      found.emplace_back(address, ordinal);
  }
  return found;
}

}  // namespace

TEST_CASE("prints the GPUs of the machine for the tests below", "[.][child]") {
  const GpuFacts facts = read_gpu_facts();
  const Machine machine = discover_with_cuda(facts);
  const std::vector<int> ordinals = cuda_ordinals(machine, facts);
  for (std::size_t g = 0; g < machine.gpus.size(); ++g)
    std::cout << "GPU " << (machine.gpus[g].pci ? to_string(*machine.gpus[g].pci) : "none") << ' '
              << ordinals[g] << ' ' << machine.gpus[g].unused_reason << '\n';
  std::cout << "problem " << facts.cuda_problem << '\n';
  for (const Warning& warning : machine.warnings) std::cout << "warning " << warning.code << '\n';
}

TEST_CASE("without a driver discovery is as without CUDA, and says why", "[cuda]") {
  const GpuFacts facts = read_gpu_facts();
  CHECK(facts.runtime_version >= 11000);
  if (facts.cuda_problem.empty()) {
    std::cout << "skipped: this machine has a driver and a GPU\n";
    return;
  }
  INFO(facts.cuda_problem);
  CHECK(truth::device_count() == 0);
  Machine machine = discover_with_cuda(facts);
  const Machine plain = discover();
  REQUIRE(machine.warnings.size() > plain.warnings.size());
  CHECK(machine.warnings[plain.warnings.size()].code == "cuda_unavailable");
  CHECK_THAT(machine.warnings[plain.warnings.size()].text, contains_text(facts.cuda_problem));
  for (Gpu& gpu : machine.gpus) CHECK_FALSE(gpu.unused_reason.empty());
  if (facts.gpus.empty()) {
    machine.warnings = plain.warnings;
    for (std::size_t g = 0; g < machine.gpus.size(); ++g)
      machine.gpus[g].unused_reason = plain.gpus[g].unused_reason;
    CHECK(machine == plain);
  }
  const std::vector<int> ordinals = cuda_ordinals(machine, facts);
  CHECK(std::all_of(ordinals.begin(), ordinals.end(), [](int o) { return o < 0; }));
}

TEST_CASE("a machine without a driver says so whatever the environment says", "[cuda]") {
  if (read_gpu_facts().cuda_problem.empty()) {
    std::cout << "skipped: this machine has a driver and a GPU\n";
    return;
  }
  for (const char* environment :
       {"CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=0,1", "CUDA_VISIBLE_DEVICES=GPU-12",
        "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_DEVICE_ORDER=nonsense"}) {
    const std::string text = child(environment);
    INFO(environment << ": " << text);
    CHECK(driven(text).empty());
    CHECK_THAT(text, contains_text("warning cuda_unavailable"));
  }
}

TEST_CASE("every CUDA device is one GPU of the machine", "[gpu]") {
  const GpuFacts facts = read_gpu_facts();
  if (!has_gpus(facts)) return;
  const Machine machine = discover_with_cuda(facts);
  const std::vector<int> ordinals = cuda_ordinals(machine, facts);
  REQUIRE(ordinals.size() == machine.gpus.size());
  std::set<int> seen;
  for (std::size_t g = 0; g < ordinals.size(); ++g) {
    const Gpu& gpu = machine.gpus[g];
    CHECK((ordinals[g] >= 0) == gpu.unused_reason.empty());
    if (ordinals[g] < 0) continue;
    INFO("gpu" << g << " is device " << ordinals[g]);
    CHECK(seen.insert(ordinals[g]).second);
    const truth::Device device = truth::device(ordinals[g]);
    REQUIRE(gpu.pci);
    CHECK(is_same_function(*gpu.pci, parse_pci_address(device.bus_id).value()));
    const Memory& memory = machine.memories[gpu.memory.value];
    if (memory.kind == MemoryKind::Gpu) CHECK(memory.bytes == device.memory_bytes);
    CHECK_FALSE(gpu.uuid.empty());
    CHECK_FALSE(gpu.model.empty());
    CHECK(find_route(machine, MemoryId{0}, GpuId{static_cast<std::uint32_t>(g)}).route_class !=
          RouteClass::None);
  }
  CHECK(seen.size() == static_cast<std::size_t>(truth::device_count()));
  CHECK(std::is_sorted(machine.gpus.begin(), machine.gpus.end(),
                       [](const Gpu& a, const Gpu& b) { return a.pci < b.pci; }));
  for (int device = 0; device < truth::device_count(); ++device)
    CHECK_FALSE(truth::has_context(device));
  std::cout << print_tree(machine);
}

TEST_CASE("peers that CUDA and NVML join have a direct route", "[gpu]") {
  const GpuFacts facts = read_gpu_facts();
  if (!has_gpus(facts, 2)) return;
  const Machine machine = discover_with_cuda(facts);
  const std::vector<int> ordinals = cuda_ordinals(machine, facts);
  SystemFacts system;
  add_gpu_facts(system, machine, facts);
  CHECK(system.gpu_lists.at("CUDA").size() == facts.cuda_order.size());
  for (std::uint32_t a = 0; a < machine.gpus.size(); ++a)
    for (std::uint32_t b = a + 1; b < machine.gpus.size(); ++b) {
      if (ordinals[a] < 0 || ordinals[b] < 0) continue;
      const bool is_missing =
          std::count(system.peers_missing.begin(), system.peers_missing.end(), std::pair(a, b)) > 0;
      CHECK(is_missing != (truth::can_access(ordinals[a], ordinals[b]) &&
                           truth::can_access(ordinals[b], ordinals[a])));
      const bool has_links =
          std::any_of(facts.gpus.begin(), facts.gpus.end(), [&](const GpuFact& gpu) {
            return gpu.cuda_ordinal == ordinals[a] && !gpu.nvlinks.empty();
          });
      if (!is_missing && has_links)
        CHECK(find_route(machine, GpuId{a}, GpuId{b}).route_class == RouteClass::Nvlink);
    }
}

TEST_CASE("CUDA_VISIBLE_DEVICES hides GPUs, which say so", "[gpu]") {
  const GpuFacts facts = read_gpu_facts();
  if (!has_gpus(facts)) return;
  const std::string all = child("WEFT_TEST=1");
  const auto everything = driven(all);
  REQUIRE_FALSE(everything.empty());
  const std::string none = child("CUDA_VISIBLE_DEVICES=");
  INFO(none);
  CHECK(driven(none).empty());
  CHECK_THAT(none, contains_text("CUDA_VISIBLE_DEVICES"));
  CHECK_THAT(none, contains_text("warning cuda_unavailable"));
  CHECK(std::count(none.begin(), none.end(), '\n') >=
        static_cast<std::ptrdiff_t>(everything.size()));

  // By UUID: this one and no other, as device 0.
  for (const GpuFact& gpu : facts.gpus) {
    if (gpu.cuda_ordinal < 0 || gpu.is_mig_instance()) continue;
    const std::string text = child("CUDA_VISIBLE_DEVICES=" + gpu.uuid);
    INFO(text);
    const auto shown = driven(text);
    REQUIRE(shown.size() == 1);
    CHECK(shown[0].second == 0);
    CHECK(is_same_function(parse_pci_address(shown[0].first).value(), *gpu.pci));
  }
}

TEST_CASE("a list in another order changes ordinals and not the machine", "[gpu]") {
  const GpuFacts facts = read_gpu_facts();
  if (!has_gpus(facts, 2)) return;
  const auto straight = driven(child("CUDA_VISIBLE_DEVICES=0,1"));
  const auto turned = driven(child("CUDA_VISIBLE_DEVICES=1,0"));
  REQUIRE(straight.size() == 2);
  REQUIRE(turned.size() == 2);
  for (std::size_t g = 0; g < 2; ++g) {
    CHECK(straight[g].first == turned[g].first);
    CHECK(straight[g].second == 1 - turned[g].second);
  }
  for (const char* order : {"FASTEST_FIRST", "PCI_BUS_ID"})
    CHECK(driven(child(std::string("CUDA_DEVICE_ORDER=") + order)).size() ==
          driven(child("WEFT_TEST=1")).size());
}
