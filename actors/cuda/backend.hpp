#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/copy_lane.hpp"
#include "actors/device_collectives.hpp"
#include "actors/link_actor.hpp"
#include "actors/pinned_actor.hpp"
#include "framework/cuda.hpp"
#include "framework/engine.hpp"
#include "framework/fabric.hpp"
#include "framework/memory_pool.hpp"
#include "topology/machine.hpp"

namespace weft::cuda {

/// The part of a runtime that CUDA makes real: its GPUs' memories, engines and copy lanes, pinned
/// host memory, staging of pageable memory. No CUDA header here.
class Backend {
 public:
  struct Options {
    bool peers = true;  ///< false: all copies between GPUs go through the host
    std::uint32_t lanes = 4;
    std::uint32_t staging_threads = 0;  ///< 0: by the number of processors
    Precision precision = Precision::Fp32;
    bool tunes_products = false;
    /// How much host memory may be pinned; beyond it copies are staged. Nothing: all of it.
    std::optional<std::size_t> pinned;
  };
  /// `ordinals[gpu]`: the device's number as CUDA counts. Blocks while contexts are made (up to a
  /// second). Throws `DeviceError`.
  Backend(const Machine& machine, const std::vector<int>& ordinals, const Options& options,
          Tracer* tracer);
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  /// What a GPU's memory may hold.
  [[nodiscard]] std::size_t budget(GpuId gpu) const;
  [[nodiscard]] MemoryPool::Backing device_backing(GpuId gpu) const;
  /// Pinned memory on a NUMA node; -1: wherever.
  [[nodiscard]] MemoryPool::Backing host_backing(int numa_node);
  /// Whether copies between two GPUs' memories need no stop in between.
  [[nodiscard]] bool are_peers(GpuId a, GpuId b) const;

  std::unique_ptr<Engine> make_engine(GpuId gpu);
  std::unique_ptr<CopyLane> make_copy_lane(const Fabric& fabric, LinkDirection& direction,
                                           std::uint32_t track);
  /// What runs collective operations on all devices at once; lives as long as this.
  [[nodiscard]] DeviceCollectives* collectives();
  /// What staging needs threads for; each body's mailbox has to know how to wake it.
  struct Worker {
    Body* body;
    ActorMailbox* mailbox;
  };
  [[nodiscard]] std::vector<Worker> workers();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weft::cuda
