#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// What the other end of an NVLink is.
enum class NvlinkRemote : std::uint8_t { Unknown, Gpu, Switch, Cpu };

/// One active NVLink of a GPU, as NVML tells it.
struct NvlinkFact {
  NvlinkRemote remote = NvlinkRemote::Unknown;
  std::optional<PciAddress> pci;  ///< of the other end; nothing where a virtual machine hides it
  std::uint32_t generation = 0;   ///< 1 to 5; 0 if unknown
  double bytes_per_second = 0;    ///< signalling rate of one direction; 0 if unknown
};

/// How one GPU reaches another, as CUDA tells it.
struct PeerFact {
  bool can_access = false;       ///< its kernels and copies may use the other's memory directly
  bool has_atomics = false;      ///< native atomics: true over NVLink, false over PCIe
  std::int32_t performance = 0;  ///< CUDA's rank, 0 is the fastest kind of link of the machine
};

/// One GPU, or one MIG instance of a GPU, as CUDA and NVML tell about it.
struct GpuFact {
  std::optional<PciAddress> pci;   ///< for a MIG instance that of its GPU
  std::string name, uuid;          ///< uuid `GPU-…` or `MIG-…`; empty if unknown
  std::size_t memory_bytes = 0;    ///< 0 if unknown
  std::int64_t numa_node = -1;     ///< host node nearest to it by its number in the system
  std::int32_t cuda_ordinal = -1;  ///< as CUDA counts in this process; -1 where it shows it not
  std::uint32_t compute_capability = 0;  ///< 10 * major + minor: 90 for 9.0; 0 if unknown
  std::string mig_parent;                ///< of a MIG instance: its GPU's uuid, or `?` if unknown
  bool is_mig_enabled = false;           ///< a whole GPU that is split: only its instances run
  bool is_prohibited = false;            ///< compute mode "prohibited": no process may use it
  bool is_integrated = false;            ///< works in the host's memory
  bool has_c2c = false;                  ///< joined to its processor by NVLink-C2C
  std::uint32_t pcie_generation = 0, pcie_width = 0;          ///< now; idle GPUs slow down
  std::uint32_t max_pcie_generation = 0, max_pcie_width = 0;  ///< of GPU and slot together
  std::vector<NvlinkFact> nvlinks;                            ///< active ones
  std::vector<PeerFact> peers;  ///< by CUDA ordinal; empty if CUDA does not show it

  [[nodiscard]] bool is_mig_instance() const { return !mig_parent.empty(); }
};

/// What CUDA and NVML say about the GPUs of this machine and about themselves.
struct GpuFacts {
  std::vector<GpuFact> gpus;
  std::vector<PciAddress> cuda_order, nvml_order;  ///< as the two libraries count
  std::string cuda_problem;             ///< why CUDA drives no GPU here; empty if it drives one
  std::string nvml_problem;             ///< why NVML could not be asked; empty if it could
  std::string driver;                   ///< the driver's version; empty if there is none
  std::int32_t runtime_version = 0;     ///< of CUDA as this weft is built: 13000 for 13.0
  std::int32_t cuda_version = 0;        ///< highest one the driver supports; 0 without a driver
  std::uint32_t lowest_capability = 0;  ///< this weft holds code from this one on; 0: any
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES if it is set
  std::vector<Warning> warnings;
};

/// Adds what NVML says (`nvml`: whole GPUs in its order, each followed by its MIG instances) to
/// facts that hold what CUDA says. The same GPU or instance is found by UUID, else by PCI address.
void add_nvml_facts(GpuFacts& facts, const std::vector<GpuFact>& nvml);

/// The machine as hwloc sees it with what CUDA and NVML say about its GPUs.
///
/// GPUs are matched by PCI address, never by index, so CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER
/// do not matter. Filled in: model, uuid, size of memory, the nearest host memory where the PCI bus
/// does not tell it, the PCIe link where hwloc knows none or only its idle rate, NVLinks and
/// NVSwitches. `unused_reason` is cleared for each GPU that CUDA can drive, and says what is in the
/// way for each NVIDIA GPU that it cannot. A GPU in MIG mode becomes its instances, which share its
/// PCI function; GPUs that hwloc does not see are added, with a warning. GPUs stay in PCI order.
/// Throws `TopologyError` only for a machine that contradicts itself.
Machine with_gpu_facts(Machine machine, const GpuFacts& facts);

/// CUDA's ordinal of each GPU of a machine, by `GpuId`; -1 for one that CUDA cannot drive. By UUID
/// where both know it, else by PCI address.
std::vector<int> cuda_ordinals(const Machine& machine, const GpuFacts& facts);

/// True if the addresses mean the same PCI function: sources write domains of 16 or 32 bits.
bool is_same_function(const PciAddress& a, const PciAddress& b);

/// The first entry of CUDA_VISIBLE_DEVICES that names no GPU of `facts`: CUDA leaves it and all
/// after it out. Nothing where every entry is good, or it is not known which GPUs there are.
std::optional<std::string> bad_visible_device(const GpuFacts& facts);

}  // namespace weft
