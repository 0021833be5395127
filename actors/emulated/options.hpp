#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace weft {

/// What a hook sees of an op before a lane runs it.
struct LaneOp {
  const std::string& name;  ///< the kernel's
  const std::string& lane;  ///< `gpu0 compute 1`, `link2 to mem0`
  std::size_t bytes = 0;    ///< of a copy
};

/// How emulated GPUs and links behave. Rates of 0 mean: as fast as the host does it.
struct EmulatedOptions {
  double flops_per_second = 0;         ///< a kernel with a cost takes at least flops / this
  double memory_bytes_per_second = 0;  ///< … and at least bytes / this
  std::chrono::nanoseconds launch{0};  ///< every kernel takes at least this
  /// Every link moves bytes at this rate instead of the topology's; 0: as fast as the host does it;
  /// negative: as the topology says.
  double link_bytes_per_second = 0;
  std::chrono::nanoseconds link_latency{0};  ///< each copy takes at least this more
  std::uint32_t compute_lanes = 2;           ///< in-order lanes of a GPU
  std::size_t memory_bytes = 0;              ///< of each GPU; 0: as the topology says
  bool poison = true;                        ///< overwrite memory when handed out, stale or freed

  /// Hooks for tests, called on the lane's thread. A returned text fails the op with it.
  std::function<std::optional<std::string>(const LaneOp&)> fault;
  /// Extra time of an op; it is spent on the lane.
  std::function<std::chrono::nanoseconds(const LaneOp&)> delay;
};

/// Reads `"flops=1e12,launch=10us,link=12e9,memory=2GB,lanes=4"`. Throws `DeviceError` naming what
/// is wrong and what may be given.
EmulatedOptions parse_emulated_options(const std::string& text);

}  // namespace weft
