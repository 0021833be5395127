#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// Kind of a hardware object, after hwloc's types. Instruction caches and whatever else the machine
/// model has no use for are `Other`.
enum class HwType : std::uint8_t {
  Machine,
  Package,
  Core,
  Pu,
  Numa,
  Cache,
  MemCache,
  Bridge,
  Pci,
  OsDevice,
  Other
};

/// What an os-device is; the values of hwloc's `osdev_type`.
enum class HwOsDevice : std::uint8_t { Block, Gpu, Network, OpenFabrics, Dma, Coprocessor, Memory };

/// One object of a hardware tree.
struct HwObject {
  HwType type = HwType::Other;
  std::uint32_t parent = 0;
  std::uint32_t end = 0;                   ///< one past the last object below this one
  std::uint32_t pu_begin = 0, pu_end = 0;  ///< its hardware threads: a range of `HwTree::pus`
  std::int64_t os_index = -1;
  std::uint64_t gp_index = 0;  ///< unique within a tree; 0 if the source has none
  std::string name, subtype;
  std::uint64_t bytes = 0;        ///< of a cache or a NUMA node
  bool has_no_cpus = false;       ///< a NUMA node whose own cpuset is empty
  std::uint32_t cache_depth = 0;  ///< 1 to 5
  bool is_host_bridge = false;    ///< a bridge whose upstream side is the host
  bool faces_up = false;  ///< a bridge that is a switch's upper port: its link is one more hop
  PciAddress pci;
  bool has_address = true;  ///< false for a PCI function whose address the source hides
  std::uint16_t pci_class = 0, pci_vendor = 0, pci_device = 0;
  double link_speed = 0;  ///< bytes per second after line coding; 0 if unknown
  HwOsDevice os_device = HwOsDevice::Block;
  double network_rate = 0;  ///< of a network device, bytes per second; 0 if unknown
  std::uint32_t host = 0;   ///< of a package: which host of several
  std::vector<std::pair<std::string, std::string>> infos;

  /// The value of an info; empty if there is none of that name.
  [[nodiscard]] std::string_view info(std::string_view key) const;
};

/// A matrix over objects: NUMA latencies, NVLink or xGMI bandwidths.
struct HwMatrix {
  std::string name;
  std::vector<std::uint32_t> objects;
  std::vector<std::uint64_t> values;  ///< `objects.size()` squared, row by row: from row to column
};

/// A link of a fabric between GPUs, switches and packages.
struct HwLink {
  LinkKind kind = LinkKind::Nvlink;
  std::uint32_t a = 0, b = 0;  ///< objects
  double there = 0, back = 0;  ///< bytes per second
  std::uint32_t width = 0;     ///< number of links bonded; 0 if it is to be told from the rate
  Provenance provenance = Provenance::Reported;
};

/// A set of equal processors of a hybrid machine.
struct HwCpuKind {
  std::vector<std::uint32_t> cpus;  ///< by operating-system index, sorted
  std::vector<std::pair<std::string, std::string>> infos;
};

/// Bandwidth of a memory as firmware states it, bytes per second.
struct HwBandwidth {
  std::uint32_t numa = 0;  ///< object
  double read = 0, write = 0;
};

/// What hwloc knows about a machine, independent of hwloc: the common form of the live machine and
/// of XML exports, from which `build_machine` makes a `Machine`.
///
/// Objects are in preorder; the children of `i` are `i + 1`, then `objects[child].end`, and so on
/// while below `objects[i].end`. Object 0 is the machine. Filled in by `HwTreeBuilder`.
struct HwTree {
  std::vector<HwObject> objects;
  std::vector<std::uint32_t> pus;  ///< objects of type `Pu` that may be used, in preorder
  std::vector<HwMatrix> matrices;
  std::vector<HwLink> links;  ///< beside those the matrices tell
  std::vector<HwCpuKind> cpu_kinds;
  std::vector<HwBandwidth> bandwidths;
  std::vector<Warning> warnings;
  bool needs_pus = true;  ///< false for sources that may not know a single hardware thread

  /// Calls `use(child)` for each child of `object`.
  template <class Use>
  void each_child(std::uint32_t object, Use use) const {
    for (std::uint32_t c = object + 1; c < objects[object].end; c = objects[c].end) use(c);
  }
  /// The nearest object above that is no bridge, PCI function or os-device.
  [[nodiscard]] std::uint32_t host_ancestor(std::uint32_t object) const;
  /// The nearest object above of a type, or nothing.
  [[nodiscard]] std::optional<std::uint32_t> above(std::uint32_t object, HwType type) const;
  /// Operating-system indices of an object's hardware threads, sorted.
  [[nodiscard]] std::vector<std::uint32_t> cpus_of(std::uint32_t object) const;

  /// Sets `pus` and every object's range. A hardware thread not in `usable` (sorted, by
  /// operating-system index) is left out; nothing there means all may be used.
  void index_pus(const std::optional<std::vector<std::uint32_t>>& usable);
};

/// The machine a hardware tree describes. Throws `TopologyError` if it has no usable hardware
/// thread.
Machine build_machine(const HwTree& tree, const std::string& source);

/// Readers. `name` names the source in errors; a text that is no such file throws `TopologyError`
/// that says where it is wrong and what was expected.
HwTree read_hwloc_xml(std::string_view text, const std::string& name);  ///< version 1 and 2
HwTree read_nccl_xml(std::string_view text, const std::string& name);   ///< NCCL and RCCL
HwTree read_smi_text(std::string_view text, const std::string& name);   ///< `nvidia-smi topo -m`

}  // namespace weft
