#pragma once

#include <cstddef>

#include "actors/cuda/collective_part.hpp"

/// Sums over devices that reach each other's memory: every member of a group launches the same
/// kernel with the same count. Each enqueues on `stream` and returns; the stream is of the current
/// device. Kinds are those that `is_summed_by_peers` tells. Throws `DeviceError` if a launch is
/// refused.
namespace weft::cuda {

constexpr unsigned kMostPeers = 8;
/// Blocks of the larger grids, of 512 threads: leaves most of a GPU to others.
constexpr unsigned kPeerBlocks = 32;
/// Words of 8 bytes that one member can push to another in one call: two a thread.
constexpr unsigned kPeerUnits = kPeerBlocks * 512 * 2;
/// Words of 4 bytes between two flags: each has a sector of its own.
constexpr unsigned kPeerFlagStride = 8;

/// Bytes of one member's inbox, which starts as zeros.
constexpr std::size_t peer_inbox_bytes(unsigned members) {
  return std::size_t{2} * members * kPeerUnits * 16;
}
/// Bytes of one member's flags, which start as zeros.
constexpr std::size_t peer_flag_bytes(unsigned members) {
  return std::size_t{members} * kPeerBlocks * kPeerFlagStride * sizeof(unsigned);
}

/// One member's view of its group.
struct PeerGroup {
  unsigned members = 0, me = 0;
  /// How many calls each block of each of the two kernels has made, `kPeerBlocks` words a kernel,
  /// zeros at first. The device counts, not the host, so that calls may be captured in graphs.
  unsigned* pushes = nullptr;
  unsigned* pulls = nullptr;
  /// Not 0: what waits gives up. In pinned host memory.
  const unsigned* stop = nullptr;
};

/// Small sums: `from` and `to` are this member's and are touched by it alone; at most
/// `8 * kPeerUnits` bytes.
struct PeerPush {
  PeerGroup group;
  void* inboxes[kMostPeers] = {};
  const void* from = nullptr;
  void* to = nullptr;
};

/// Any size: all members' data and results.
struct PeerPull {
  PeerGroup group;
  unsigned* flags[kMostPeers] = {};
  const void* from[kMostPeers] = {};
  void* to[kMostPeers] = {};
};

bool is_summed_by_peers(ElementKind kind);
/// Loads the kernels on the current device: a load behind a kernel that waits could wait for it.
void load_peer_reduce();
void peer_reduce(CUstream_st* stream, const PeerPush& push, std::size_t count, ElementKind kind);
void peer_reduce(CUstream_st* stream, const PeerPull& pull, std::size_t count, ElementKind kind);

}  // namespace weft::cuda
