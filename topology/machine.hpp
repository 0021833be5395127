#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// A strong index into one of a `Machine`'s lists. Ids are dense and start at 0.
template <class Tag>
struct Id {
  std::uint32_t value = kNone;
  static constexpr std::uint32_t kNone = 0xffffffffu;

  [[nodiscard]] bool is_valid() const { return value != kNone; }
  friend bool operator==(Id, Id) = default;
  friend auto operator<=>(Id, Id) = default;
};
using SocketId = Id<struct SocketTag>;  ///< index into `Machine::sockets`
using GpuId = Id<struct GpuTag>;        ///< index into `Machine::gpus`
using MemoryId = Id<struct MemoryTag>;  ///< index into `Machine::memories`
using HubId = Id<struct HubTag>;        ///< index into `Machine::hubs`
using NicId = Id<struct NicTag>;        ///< index into `Machine::nics`
using DiskId = Id<struct DiskTag>;      ///< index into `Machine::disks`
using LinkId = Id<struct LinkTag>;      ///< index into `Machine::links`

/// What a link can end at.
enum class NodeKind : std::uint8_t { Socket, Memory, Gpu, Hub, Nic, Disk };

/// One end of a link: the thing's kind and its index in that kind's list.
struct Node {
  NodeKind kind = NodeKind::Socket;
  std::uint32_t index = 0;

  Node() = default;
  Node(NodeKind k, std::uint32_t i) : kind(k), index(i) {}
  Node(SocketId id) : kind(NodeKind::Socket), index(id.value) {}  // NOLINT: ids are nodes
  Node(MemoryId id) : kind(NodeKind::Memory), index(id.value) {}  // NOLINT
  Node(GpuId id) : kind(NodeKind::Gpu), index(id.value) {}        // NOLINT
  Node(HubId id) : kind(NodeKind::Hub), index(id.value) {}        // NOLINT
  Node(NicId id) : kind(NodeKind::Nic), index(id.value) {}        // NOLINT
  Node(DiskId id) : kind(NodeKind::Disk), index(id.value) {}      // NOLINT
  friend bool operator==(const Node&, const Node&) = default;
  friend auto operator<=>(const Node&, const Node&) = default;
};

/// Where a figure comes from.
enum class Provenance : std::uint8_t { Assumed, Reported, Measured };

/// A PCI address `domain:bus:device.function`.
struct PciAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0, device = 0, function = 0;
  friend bool operator==(const PciAddress&, const PciAddress&) = default;
  friend auto operator<=>(const PciAddress&, const PciAddress&) = default;
};

/// One physical core: the operating-system indices of its usable hardware threads.
struct Core {
  std::vector<std::uint32_t> pus;  ///< sorted; at least one
  std::int32_t efficiency = -1;    ///< hybrid processors: higher is faster; -1 where all are equal
  friend bool operator==(const Core&, const Core&) = default;
};

/// A cache level as one socket's cores see it.
struct Cache {
  std::uint32_t level = 0;
  std::size_t bytes = 0;
  std::uint32_t count = 0;  ///< how many of this level the socket has
  friend bool operator==(const Cache&, const Cache&) = default;
};

/// A package with at least one hardware thread this process may use.
struct Socket {
  std::string model;                ///< empty if unknown
  std::vector<std::uint32_t> cpus;  ///< usable hardware threads by OS index, sorted
  std::vector<Core> cores;          ///< their grouping by physical core
  std::vector<Cache> caches;
  std::vector<MemoryId> memories;  ///< nearest first; empty for a package without one
  friend bool operator==(const Socket&, const Socket&) = default;
};

enum class MemoryKind : std::uint8_t { Dram, Hbm, Pmem, Cxl, Gpu, Disk };

/// Something that holds bytes: a NUMA node, a GPU's memory, a disk.
struct Memory {
  MemoryKind kind = MemoryKind::Dram;
  std::size_t bytes = 0;            ///< capacity; 0 if unknown
  std::vector<SocketId> near;       ///< sockets local to it
  std::vector<std::uint32_t> cpus;  ///< hardware threads local to it, sorted; empty if none
  GpuId gpu;                        ///< the GPU whose memory this is (kind `Gpu`)
  std::int64_t os_index = -1;       ///< NUMA node number of the operating system
  friend bool operator==(const Memory&, const Memory&) = default;
};

/// One physical or partition-visible accelerator.
struct Gpu {
  std::string vendor, model;  ///< empty if unknown
  std::optional<PciAddress> pci;
  MemoryId memory;                 ///< its own memory; for an APU the one it shares
  std::vector<MemoryId> near;      ///< host memories nearest to it; empty if unknown
  std::vector<GpuId> shares_with;  ///< partitions of the same PCI function or package
  std::string uuid;                ///< empty if unknown
  std::string unused_reason;       ///< why it cannot be driven here; empty if it can
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct Nic {
  std::string name;  ///< `mlx5_0`, `eth0`
  std::optional<PciAddress> pci;
  std::vector<MemoryId> near;
  friend bool operator==(const Nic&, const Nic&) = default;
};

struct Disk {
  std::string name;
  std::size_t bytes = 0;
  std::optional<PciAddress> pci;
  MemoryId memory;  ///< the disk seen as a memory, if it holds replicas
  friend bool operator==(const Disk&, const Disk&) = default;
};

enum class HubKind : std::uint8_t { HostBridge, PcieSwitch, NvSwitch, Package, Network };

/// Joins links, runs nothing, has no actor.
struct Hub {
  HubKind kind = HubKind::HostBridge;
  std::string name;
  std::vector<MemoryId> near;
  std::uint32_t host = 0;  ///< index of the host it belongs to
  friend bool operator==(const Hub&, const Hub&) = default;
};

/// `Bus` joins a socket to its own memories and host bridges (integrated memory controller).
enum class LinkKind : std::uint8_t { Bus, Pcie, Nvlink, Xgmi, C2c, Socket, Disk, Network };

/// Links of GPUs with each other, with their sockets and with NVSwitches.
constexpr bool is_fabric(LinkKind kind) {
  return kind == LinkKind::Nvlink || kind == LinkKind::Xgmi || kind == LinkKind::C2c;
}

/// One physical hop between two nodes, with a rate and a latency per direction.
struct Link {
  LinkKind kind = LinkKind::Pcie;
  Node a, b;
  /// Peak payload rate in bytes per second: [0] from `a` to `b`, [1] from `b` to `a`.
  double bytes_per_second[2] = {0, 0};
  std::chrono::nanoseconds latency{0};
  std::uint32_t width = 0;       ///< PCIe lanes or number of NVLinks/xGMI links; 0 if unknown
  std::uint32_t generation = 0;  ///< PCIe or NVLink generation; 0 if unknown
  Provenance provenance = Provenance::Assumed;
  friend bool operator==(const Link&, const Link&) = default;
};

/// Something the source said that is contradictory, missing or unusable.
struct Warning {
  std::string code;  ///< stable, `snake_case`
  std::string text;  ///< one sentence for a person
  friend bool operator==(const Warning&, const Warning&) = default;
};

/// The topology of one machine, or of several hosts joined by a network, as plain data.
///
/// Immutable once built: everything that reads a machine takes it by const reference. Ids are
/// indices into these lists. Names for people and files are `socket0`, `mem0`, `gpu0`, `hub0`,
/// `nic0`, `disk0`, `link0`, in hwloc and PCI order.
struct Machine {
  std::string source;  ///< where it came from: `live`, a file name, the synthetic string
  std::vector<Socket> sockets;
  std::vector<Memory> memories;
  std::vector<Gpu> gpus;
  std::vector<Hub> hubs;
  std::vector<Nic> nics;
  std::vector<Disk> disks;
  std::vector<Link> links;
  std::vector<Warning> warnings;
  friend bool operator==(const Machine&, const Machine&) = default;
};

/// `socket0`, `mem1`, `gpu0` …
std::string to_string(Node node);

/// A topology that cannot be read, found or understood. `what()` names the source, the place in it
/// and what was expected.
class TopologyError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace weft
