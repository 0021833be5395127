#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "topology/hw_tree.hpp"
#include "topology/machine.hpp"

namespace weft {

/// The state that the steps of `build_machine` share: the tree, the machine so far, and which node
/// of the machine stands for which object of the tree.
///
/// A *place* is what memories and devices hang from: a package with usable hardware threads (a
/// socket), a package without (a hub), or the socket made of the hardware threads outside any
/// package.
struct HwBuild {
  explicit HwBuild(const HwTree& t) : tree(t) {}

  const HwTree& tree;
  Machine machine;
  std::vector<Node> places;
  std::vector<std::uint32_t> hosts;                           ///< parallel to `places`
  std::vector<std::uint32_t> place_of_pu;                     ///< parallel to `tree.pus`
  std::unordered_map<std::uint32_t, std::uint32_t> place_of;  ///< package object to place
  std::unordered_map<std::uint32_t, Node> node_of;            ///< objects that matrices can name
  std::unordered_map<std::uint32_t, MemoryId> memory_of;      ///< NUMA object to memory
  std::vector<std::uint32_t> local_object;  ///< per host memory: the object it is local to

  /// The object whose hardware threads an object is local to: the nearest at or above it, outside
  /// the I/O tree, with a usable one.
  [[nodiscard]] std::uint32_t locality(std::uint32_t object) const;
  /// The places an object belongs to. A package without usable hardware threads becomes a place
  /// now.
  std::vector<std::uint32_t> places_near(std::uint32_t object);
  /// Host memories nearest to what hangs from an object; empty where that is the whole of a machine
  /// of several sockets.
  [[nodiscard]] std::vector<MemoryId> memories_near(std::uint32_t object) const;

  LinkId add_link(LinkKind kind, Node a, Node b, double rate, std::chrono::nanoseconds latency,
                  Provenance provenance);
  void warn(std::string code, std::string text);
};

/// The steps, in the order they run.
void add_sockets(HwBuild& build);
void add_memories(HwBuild& build);
void add_devices(HwBuild& build);
void add_socket_links(HwBuild& build);
void add_fabric(HwBuild& build);

/// A GPU still without its number: GPUs are numbered in PCI order once all are found.
struct FoundGpu {
  Gpu gpu;
  std::size_t memory_bytes = 0;
  bool shares_host_memory = false;
  std::vector<std::uint32_t> objects;  ///< PCI function and os-devices that mean this GPU
  Node parent;                         ///< hub or socket it is joined to
  std::int64_t order = 0;              ///< among those without a PCI address
  std::uint32_t chip = 0;              ///< equal for partitions of one function
  Link link;                           ///< without its end at the GPU
};

/// The GPUs of one PCI function, or of the os-devices given if there is no function: one for each
/// device that CUDA, NVML, RSMI or Level Zero lists, at least one for a function.
std::vector<FoundGpu> gpus_of(const HwTree& tree, std::optional<std::uint32_t> function,
                              const std::vector<std::uint32_t>& os_devices);

/// Numbers the GPUs and adds them with their memories and links.
void add_gpus(HwBuild& build, std::vector<FoundGpu> found);

/// Bytes of a size that hwloc gives in units of 1024 bytes; 0 if it is no number or above 2^60
/// bytes.
std::size_t bytes_of_kib(std::string_view text);

/// True for an os-device of a GPU library: `cuda0`, `nvml0`, `rsmi0`, `ze0`, `opencl0d0`.
bool is_gpu_os_device(const HwObject& object);

}  // namespace weft
