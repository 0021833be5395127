#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "actors/cuda/collective_part.hpp"

struct ncclComm;

namespace weft::cuda {

/// A group of devices of this process that run collective operations through NCCL, one
/// communicator a device. One thread uses it.
///
/// Every operation takes one part a member, in the order of the constructor's ordinals, enqueues
/// all of them in one NCCL group and returns; data are in the devices' memory. No operation waits
/// for a device, except that one may block while a stream's queue of launches is full. Operations
/// of one group run in the order of the calls; of two groups that share devices, not both at a
/// time: order the streams. Nothing is done for 0 elements. Each throws `UsageError` for a wrong
/// number of parts, and `DeviceError` with NCCL's text; the group can only be aborted or destroyed
/// after the latter.
///
/// Unless the environment says otherwise already, the first group of a process sets, before NCCL
/// reads it, `NCCL_NVLS_ENABLE=0` (no NVLink multicast) and `NCCL_RUNTIME_CONNECT=0` (the
/// constructor makes all connections, so that no operation allocates memory). Other threads must
/// not read or change the environment meanwhile.
class NcclGroup {
 public:
  using Part = CollectivePart;

  /// Blocks for some hundred milliseconds. Throws `UsageError` for no or for equal ordinals,
  /// `DeviceError` with NCCL's text.
  explicit NcclGroup(const std::vector<int>& ordinals);
  /// What was enqueued must have ended, or the group have been aborted, else it blocks.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  /// Each `to[i]` becomes the sum of all members' `from[i]`; may be in place. Integers wrap around.
  void all_reduce(std::span<const Part> parts, std::size_t count, ElementKind kind);
  /// Each `to` becomes the root's `from`; may be in place; the other members' `from` is not used.
  void broadcast(std::span<const Part> parts, std::size_t count, ElementKind kind,
                 std::size_t root);
  /// Member m's `to[i]` becomes the sum of all members' `from[m · result_count + i]`; in place is
  /// `to = from + m · result_count` in elements.
  void reduce_scatter(std::span<const Part> parts, std::size_t result_count, ElementKind kind);
  /// Each `to[m · count + i]` becomes member m's `from[i]`; in place is `from = to + m · count` in
  /// elements.
  void all_gather(std::span<const Part> parts, std::size_t count, ElementKind kind);

  /// What went wrong since, with the device; empty if nothing. Does not block.
  [[nodiscard]] std::string asynchronous_error();
  /// Makes what is enqueued end, its results undefined, and gives the communicators back. May block
  /// until the devices have left it. The group is unusable afterwards. Reports no error.
  void abort() noexcept;

 private:
  template <class Each>
  void run(const char* call, std::span<const Part> parts, const Each& each);
  /// Throws unless `result` is success; waits while NCCL says that it is still at it.
  void check(const char* call, int result);

  std::vector<int> ordinals_;
  std::vector<ncclComm*> communicators_;  // null from abort on
  bool is_aborted_ = false;
};

}  // namespace weft::cuda
