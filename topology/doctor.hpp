#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// How bad a finding is. `Broken`: something does not work and has to be put right.
enum class Severity : std::uint8_t { Note, Warning, Broken };

/// `note`, `warning`, `broken`.
const char* to_string(Severity severity);

/// Something about a machine that would surprise its user.
struct Finding {
  std::string code;  ///< stable, `snake_case`
  Severity severity = Severity::Note;
  std::string text;         ///< what was found
  std::string consequence;  ///< what it means for a program
  std::string remedy;       ///< what to do; empty if nothing can be done
};

/// What the operating system says about the machine this process runs on, as plain data, so that
/// judging it can be tested.
struct SystemFacts {
  std::vector<std::uint32_t> online_cpus, allowed_cpus;    ///< by operating-system index
  std::vector<std::uint32_t> online_nodes, allowed_nodes;  ///< NUMA nodes
  std::optional<double> cpu_quota;  ///< cores' worth of time of the cgroup; nothing if unlimited
  double load = 0;                  ///< runnable threads, mean of one minute
  std::optional<std::uint64_t> memlock;  ///< bytes that may be locked; nothing if unlimited
  std::uint64_t shm_bytes = 0;           ///< size of /dev/shm; 0 if there is none
  bool is_optimised = true;              ///< how this weft was built
  bool is_sanitised = false;
  bool nvidia_driver = false, mig = false;
  std::string visible_devices;  ///< CUDA_VISIBLE_DEVICES
  bool has_visible_devices = false;

  struct PciDevice {
    PciAddress address;
    std::uint16_t pci_class = 0, vendor = 0, device = 0;
    int numa_node = -1;
    double speed = 0, max_speed = 0;  ///< GT/s; 0 if unknown
    int width = 0, max_width = 0;
    bool is_suspended = false;
  };
  std::vector<PciDevice> pci;

  /// GPUs in the order in which a library lists them, for each library that could be asked:
  /// `driver`, `CUDA`, `NVML`.
  std::map<std::string, std::vector<PciAddress>> gpu_lists;
  /// Pairs of GPUs (by index) that cannot copy to each other directly, or did so wrongly.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> peers_missing, peers_wrong;
};

/// Reads them. Never fails: what cannot be read stays at its default.
SystemFacts read_system_facts();

/// Findings that a description of a machine alone gives: what its warnings say, what is not
/// connected, unequal links, GPUs that cannot be used.
std::vector<Finding> diagnose_machine(const Machine& machine);

/// Findings that the running system adds. `machine` is the live one.
std::vector<Finding> diagnose_system(const Machine& machine, const SystemFacts& facts);

/// True if any finding is `Broken`.
bool is_broken(const std::vector<Finding>& findings);

/// For people: one paragraph each, worst first.
std::string print_findings(const std::vector<Finding>& findings);

/// `{"machine", "broken", "findings": [{"code", "severity", "text", "consequence", "remedy"}]}`.
std::string findings_as_json(const Machine& machine, const std::vector<Finding>& findings);

}  // namespace weft
