#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "actors/cuda/collective_part.hpp"

namespace weft::cuda {

/// Sums over 2 to 8 devices of this process that all reach each other's memory, with kernels of our
/// own: up to 256 KB (divided by the other members' number) every member pushes its data to all
/// others, which costs one way over the link; above, each sums its share and writes it to all. The
/// sums are equal to the bit on all members and in every run. One thread uses a group.
///
/// The group's kernels wait for each other on the devices. So all calls of one member are enqueued
/// on one stream, or on streams that are ordered by events, and nothing that a member's part waits
/// for may itself wait for another member's part of the same or a later call. At most 32 blocks of
/// 512 threads are on a device, and they make way for nobody: what else runs there has the rest.
/// Calls may be captured in graphs, one a device, which are then launched equally often.
class PeerReduce {
 public:
  using Part = CollectivePart;

  /// Switches peer access on where it is not, loads the kernels, and takes 1 MB of each device's
  /// memory a member from the driver. Blocks; other work of the devices may be waited for. Throws
  /// `UsageError` for fewer than 2 or more than 8 devices or one named twice, `DeviceError` for two
  /// that do not reach each other.
  explicit PeerReduce(const std::vector<int>& ordinals);
  /// Waits for the devices: what was enqueued must have ended or been aborted.
  ~PeerReduce();
  PeerReduce(const PeerReduce&) = delete;
  PeerReduce& operator=(const PeerReduce&) = delete;

  /// Float, double and integers of 32 and 64 bits, any count.
  [[nodiscard]] bool takes(std::size_t count, ElementKind kind) const;

  /// Each `to[i]` becomes `from[i]` of the first member + of the second + …; may be in place.
  /// Integers wrap around. One part a member, in the order of the ordinals; any alignment that
  /// suits the element, above 256 KB multiples of 16 bytes are much faster. Enqueues and returns.
  /// Parts must be where the other members' kernels reach them: in blocks of `DeviceMemory` whose
  /// pool has been allowed all members (`connect_peers`), or from `cudaMalloc`. They must stay
  /// until all members' streams have passed the call. Throws `UsageError` for what it does not
  /// take, and `DeviceError` if a launch is refused or the group was aborted; the former aborts the
  /// group.
  void all_reduce(std::span<const Part> parts, std::size_t count, ElementKind kind);

  /// Makes kernels that wait for another member end within some 10 ms, their results undefined. The
  /// group is unusable afterwards. Blocks not. A member whose part starts only then may still write
  /// to the others' results. Any thread.
  void abort() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::cuda
