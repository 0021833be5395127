#include "topology/doctor.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "topology/discover.hpp"
#include "topology/machine_edit.hpp"
#include "topology/shipped.hpp"

using namespace weft;

namespace {

const Finding* find(const std::vector<Finding>& findings, const std::string& code) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& finding) { return finding.code == code; });
  return found == findings.end() ? nullptr : &*found;
}

Machine two_gpus() {
  Machine machine = parse_machine("2 sockets x 2 cores, 2 gpus");
  for (std::uint32_t g = 0; g < 2; ++g) {
    machine.gpus[g].vendor = "NVIDIA";
    machine.gpus[g].pci = PciAddress{0, static_cast<std::uint8_t>(0x10 + g), 0, 0};
  }
  return machine;
}

/// A system without anything to find.
SystemFacts healthy() {
  SystemFacts facts;
  facts.online_cpus = facts.allowed_cpus = {0, 1, 2, 3};
  facts.online_nodes = facts.allowed_nodes = {0, 1};
  facts.shm_bytes = std::uint64_t{8} << 30;
  for (std::uint8_t g = 0; g < 2; ++g) {
    SystemFacts::PciDevice device;
    device.address = PciAddress{0, static_cast<std::uint8_t>(0x10 + g), 0, 0};
    device.pci_class = 0x0302;
    device.vendor = 0x10de;
    device.numa_node = g;
    device.speed = device.max_speed = 16;
    device.width = device.max_width = 16;
    facts.pci.push_back(device);
  }
  facts.gpu_lists["CUDA"] = {facts.pci[0].address, facts.pci[1].address};
  return facts;
}

}  // namespace

TEST_CASE("a healthy system has no findings", "[topology]") {
  CHECK(diagnose_system(two_gpus(), healthy()).empty());
  CHECK(diagnose_machine(two_gpus()).empty());
  CHECK(print_findings({}) == "nothing found that would surprise you\n");
}

TEST_CASE("each thing that surprises is found, with consequence and remedy", "[topology]") {
  struct Case {
    const char* code;
    Severity severity;
    void (*change)(SystemFacts&);
  };
  const Case cases[] = {
      {"cpuset_smaller", Severity::Warning,
       [](SystemFacts& f) {
         f.allowed_cpus = {0, 1};
       }},
      {"memory_nodes_disallowed", Severity::Warning, [](SystemFacts& f) { f.allowed_nodes = {0}; }},
      {"cpu_quota", Severity::Warning, [](SystemFacts& f) { f.cpu_quota = 1.5; }},
      {"cores_oversubscribed", Severity::Warning, [](SystemFacts& f) { f.load = 40; }},
      {"memlock_limit", Severity::Warning, [](SystemFacts& f) { f.memlock = 64 << 10; }},
      {"shm_small", Severity::Warning, [](SystemFacts& f) { f.shm_bytes = 64 << 20; }},
      {"numa_unknown", Severity::Warning, [](SystemFacts& f) { f.pci[0].numa_node = -1; }},
      {"link_narrow", Severity::Warning, [](SystemFacts& f) { f.pci[1].width = 8; }},
      {"link_slow", Severity::Note, [](SystemFacts& f) { f.pci[1].speed = 2.5; }},
      {"hwloc_plugin_missing", Severity::Broken,
       [](SystemFacts& f) {
         f.pci.push_back(f.pci[0]);
         f.pci.back().address.bus = 0x77;
       }},
      {"gpus_not_all_seen", Severity::Broken,
       [](SystemFacts& f) { f.gpu_lists["CUDA"].pop_back(); }},
      {"gpu_order_differs", Severity::Warning,
       [](SystemFacts& f) { std::swap(f.gpu_lists["CUDA"][0], f.gpu_lists["CUDA"][1]); }},
      {"mig_on", Severity::Note, [](SystemFacts& f) { f.mig = true; }},
      {"peer_missing", Severity::Warning,
       [](SystemFacts& f) {
         f.peers_missing = {{0, 1}};
       }},
      {"peer_wrong", Severity::Broken,
       [](SystemFacts& f) {
         f.peers_wrong = {{0, 1}};
       }},
      {"debug_build", Severity::Warning, [](SystemFacts& f) { f.is_optimised = false; }},
  };
  for (const Case& one : cases) {
    INFO(one.code);
    SystemFacts facts = healthy();
    one.change(facts);
    const auto findings = diagnose_system(two_gpus(), facts);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].code == one.code);
    CHECK(findings[0].severity == one.severity);
    CHECK_FALSE(findings[0].text.empty());
    CHECK_FALSE(findings[0].consequence.empty());
    CHECK_FALSE(findings[0].remedy.empty());
    CHECK(is_broken(findings) == (one.severity == Severity::Broken));
  }
}

TEST_CASE("GPUs that neither CUDA nor NVML lists were not given to this process", "[topology]") {
  SystemFacts facts = healthy();
  facts.gpu_lists["CUDA"].pop_back();
  facts.gpu_lists["NVML"] = facts.gpu_lists["CUDA"];
  const auto findings = diagnose_system(two_gpus(), facts);
  REQUIRE(findings.size() == 2);
  for (const Finding& finding : findings) {
    CHECK(finding.code == "gpus_not_all_seen");
    CHECK(finding.severity == Severity::Warning);
    CHECK_THAT(finding.remedy, contains_text("container"));
  }
  // Addresses with a domain of another width are the same; CUDA shows one MIG instance.
  facts = healthy();
  facts.gpu_lists["CUDA"][0].domain += 0x10000;
  CHECK(diagnose_system(two_gpus(), facts).empty());
  facts = healthy();
  facts.gpu_lists["NVML"] = facts.gpu_lists["CUDA"];
  facts.gpu_lists["CUDA"].pop_back();
  facts.mig = true;
  for (const Finding& finding : diagnose_system(two_gpus(), facts))
    CHECK(finding.severity == Severity::Note);
}

TEST_CASE("a GPU hidden by CUDA_VISIBLE_DEVICES is no fault", "[topology]") {
  SystemFacts facts = healthy();
  facts.gpu_lists["CUDA"].pop_back();
  facts.has_visible_devices = true;
  facts.visible_devices = "0";
  const auto findings = diagnose_system(two_gpus(), facts);
  REQUIRE(find(findings, "gpus_not_all_seen"));
  CHECK_FALSE(is_broken(findings));
}

TEST_CASE("a description alone shows what is not joined, unequal or unused", "[topology]") {
  Machine machine = two_gpus();
  for (Link& link : machine.links)
    if (link.kind == LinkKind::Pcie) link.provenance = Provenance::Reported;
  for (Link& link : machine.links)
    if (link.b == Node(GpuId{1})) link.bytes_per_second[0] = link.bytes_per_second[1] = 6e9;
  machine.gpus[0].unused_reason = "no driver";
  const auto findings = diagnose_machine(machine);
  CHECK(find(findings, "gpu_link_slower"));
  CHECK(find(findings, "gpu_unused"));
  const auto apart = diagnose_machine(without(machine, "hub1"));
  CHECK(is_broken(apart));
  CHECK_THAT(print_findings(apart),
             Catch::Matchers::StartsWith("broken: ") && contains_text("gpu1: no working link"));
  CHECK(find(diagnose_machine(machine_from("dgx-1v")), "fabric_uneven"));
  CHECK_FALSE(find(diagnose_machine(machine_from("dgx-a100")), "fabric_uneven"));
}

TEST_CASE("findings as JSON have the documented keys", "[topology]") {
  const Machine machine = machine_from("laptop");
  const auto json = nlohmann::json::parse(findings_as_json(machine, diagnose_machine(machine)));
  CHECK(json["machine"] == "laptop");
  CHECK(json["broken"] == false);
  for (const char* key : {"code", "severity", "text", "consequence", "remedy"})
    CHECK(json["findings"][0].contains(key));
}

TEST_CASE("facts of the running system can be read and judged", "[topology]") {
  const SystemFacts facts = read_system_facts();
  CHECK_FALSE(facts.online_cpus.empty());
  CHECK_FALSE(facts.allowed_cpus.empty());
  CHECK_NOTHROW(diagnose_system(discover(), facts));
}
