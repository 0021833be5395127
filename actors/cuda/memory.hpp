#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/cuda/device_state.hpp"
#include "framework/memory_pool.hpp"

namespace weft::cuda {

/// The memory of one GPU, from a pool of the driver's of its own: growing it stops no stream, and
/// peers may be given access.
class DeviceMemory {
 public:
  /// Throws `DeviceError`.
  explicit DeviceMemory(std::shared_ptr<DeviceState> device);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] cudaMemPool_t pool() const { return pool_; }
  /// Lets kernels and copies of device `peer` reach the pool's blocks. Throws `DeviceError`.
  void allow(int peer);
  /// What a memory pool may take: the free memory less a reserve for the driver.
  [[nodiscard]] std::size_t budget() const;
  /// Keeps `memory` alive as long as it is used: tensors may outlive their runtime.
  static MemoryPool::Backing backing(const std::shared_ptr<DeviceMemory>& memory);

 private:
  void* allocate(std::size_t bytes);
  void free(void* data);

  std::shared_ptr<DeviceState> device_;
  std::mutex mutex_;
  cudaStream_t stream_ = nullptr;  // on which blocks come and go
  cudaMemPool_t pool_ = nullptr;
};

/// How many bytes of host memory the memories of one runtime may pin together. Any thread.
class PinnedBudget {
 public:
  explicit PinnedBudget(std::size_t bytes) : left_(bytes) {}
  /// False: so much is not left.
  bool take(std::size_t bytes);
  void give_back(std::size_t bytes) { left_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> left_;
};

/// Pinned host memory near one NUMA node, so that every copy is asynchronous and at the link's
/// full rate. Pages are taken from the system in large slabs and pinned once: pinning 64 MB takes
/// some milliseconds. Beyond the budget slabs are pageable.
class PinnedMemory {
 public:
  /// `numa_node` -1: wherever. The first of `devices` that is not lost pins.
  PinnedMemory(int numa_node, std::vector<std::shared_ptr<DeviceState>> devices,
               std::shared_ptr<PinnedBudget> budget)
      : numa_node_(numa_node), devices_(std::move(devices)), budget_(std::move(budget)) {}
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  /// Keeps `memory` alive as long as it is used.
  static MemoryPool::Backing backing(const std::shared_ptr<PinnedMemory>& memory);

 private:
  void* allocate(std::size_t bytes);
  void free(void* data, std::size_t bytes);
  struct Slab {
    std::size_t bytes;
    bool is_pinned;
  };
  char* take_slab(std::size_t bytes);
  bool pin(void* data, std::size_t bytes);
  void give_slab_back(char* data, const Slab& slab);

  const int numa_node_;
  const std::vector<std::shared_ptr<DeviceState>> devices_;
  const std::shared_ptr<PinnedBudget> budget_;
  std::mutex open_mutex_;  // for the open slab; taken before the next
  std::mutex mutex_;       // for the lists
  std::map<char*, Slab> slabs_;
  char* open_ = nullptr;  // the rest of the slab that small blocks are cut from
  std::size_t open_bytes_ = 0;
  std::map<std::size_t, std::vector<void*>> spare_;  // small blocks that came back, by size
};

}  // namespace weft::cuda
