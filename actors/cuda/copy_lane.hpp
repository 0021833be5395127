#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/copy_lane.hpp"
#include "actors/cuda/lane.hpp"
#include "actors/cuda/stager.hpp"
#include "framework/fabric.hpp"

namespace weft::cuda {

/// One direction of a link: a stream on each GPU that copies over it. A copy between a GPU and
/// pinned memory, or between GPUs, is one asynchronous copy; pageable memory and copies within host
/// memory go through the stager.
class GpuCopyLane final : public CopyLane {
 public:
  struct Setup {
    LaneTable* table = nullptr;
    Stager* stager = nullptr;
    Tracer* tracer = nullptr;
    std::uint32_t track = 0;
    LinkLoad* load = nullptr;
    const MemoryPool* program_memory = nullptr;  ///< marks replicas in the program's own memory
    bool has_pageable = false;  ///< the runtime's own host memory may be pageable too
    std::vector<cudaMemPool_t> pool_of_memory;   ///< the same for a GPU's memory
    std::vector<DeviceState*> device_of_memory;  ///< by memory; null: host memory
    std::function<void()> on_copied;             ///< bytes are off the lane; any thread
  };
  explicit GpuCopyLane(Setup setup);
  ~GpuCopyLane() override;

  void push(Op& op) override;
  void relay(Op& op, std::uint32_t via) override;
  [[nodiscard]] bool can_relay(std::uint32_t via) override;
  [[nodiscard]] Failure* loss(const Op& op) const override;
  void add_busy_bytes(std::int64_t bytes) override {
    busy_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t busy_bytes() const override {
    return busy_bytes_.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] bool has_own_copies() const override {
    return own_copies_.load(std::memory_order_relaxed) > 0;
  }
  bool progress(ReadySink& sink, bool quiet) override;
  [[nodiscard]] bool needs_progress() const override;

 private:
  Lane* lane_on(DeviceState& device);
  void copy(Op& op, Lane& lane);
  void stage(Op& op, DeviceState* device);
  static Failure* loss_of(const DeviceState& device, const Op& op);
  static Failure* failure_of(const Op& op, Lane& lane, const std::string& message);
  struct Ring;
  [[nodiscard]] bool is_pageable(const Replica& replica) const;
  void copied(Op& op);
  void measure(LinkLoad* load, std::int64_t bytes, bool failed);

  Setup setup_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::map<std::uint32_t, std::unique_ptr<Ring>> rings_;  // by `via`; null: cannot be made
  std::atomic<std::int64_t> busy_bytes_{0}, own_copies_{0};
  std::chrono::steady_clock::time_point busy_since_{};
};

}  // namespace weft::cuda
