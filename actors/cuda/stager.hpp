#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/cuda/device_state.hpp"
#include "actors/pinned_actor.hpp"
#include "framework/op.hpp"

namespace weft {
class Tracer;
}

namespace weft::cuda {

/// Copies between pageable host memory and GPUs, and within host memory, by several threads. Each
/// has a ring of pinned chunks and a stream on each GPU; a job is cut into pieces that all of them
/// take from. Into host memory with streaming stores, for nobody reads it soon.
class Stager {
 public:
  enum class Direction : std::uint8_t { ToHost, ToDevice, Host };

  /// One copy op. Its producers are done; it is settled by whoever finishes the last piece.
  struct Job {
    Op* op = nullptr;
    const char* from = nullptr;
    char* to = nullptr;
    std::size_t bytes = 0;
    DeviceState* device = nullptr;  ///< null: `Direction::Host`
    Direction direction = Direction::Host;
    Tracer* tracer = nullptr;
    std::uint32_t track = 0;
    std::function<void(Op&, bool failed)> before_settle;
    std::function<void()> after_settle;
  };

  explicit Stager(std::uint32_t workers);
  ~Stager();

  /// Any thread.
  void push(Job job);

  class Worker;
  /// The caller gives each body a thread, and its mailbox a way to wake it.
  [[nodiscard]] std::vector<std::unique_ptr<Worker>>& workers() { return workers_; }

 private:
  friend class Worker;
  struct Shared;  // a job and what is left of it
  struct Piece {
    std::shared_ptr<Shared> job;
    std::size_t offset = 0, bytes = 0;
  };
  bool take(Piece& piece);
  [[nodiscard]] bool has_work() const { return pieces_left_.load(std::memory_order_seq_cst) > 0; }

  std::mutex mutex_;
  std::deque<std::shared_ptr<Shared>> jobs_;
  std::atomic<std::int64_t> pieces_left_{0};
  std::vector<std::unique_ptr<Worker>> workers_;
};

/// One thread of a stager.
class Stager::Worker final : public Body {
 public:
  explicit Worker(Stager& stager) : stager_(stager), mailbox_(nullptr) {}
  ~Worker() override;

  bool run_some() override;
  bool prepare_to_park() override {
    return !must_look_again() && mailbox_.prepare_to_park() && !stager_.has_work();
  }
  [[nodiscard]] bool must_look_again() const override { return used_ > 0; }
  void thread_ends() override;

  ActorMailbox& mailbox() { return mailbox_; }

 private:
  static constexpr std::size_t kSlots = 3;
  struct Slot {
    char* pinned = nullptr;
    Piece piece;
    cudaEvent_t done = nullptr;
  };
  void start(Piece piece);
  bool finish_oldest();
  void finish(const Piece& piece, const std::string& error);

  Stager& stager_;
  ActorMailbox mailbox_;  // woken, never filled
  std::array<Slot, kSlots> slots_;
  std::size_t oldest_ = 0, used_ = 0;
  struct PerDevice {
    int ordinal;
    cudaStream_t stream;
    std::array<cudaEvent_t, kSlots> events;
  };
  std::vector<PerDevice> devices_;
  PerDevice& on(DeviceState& device);
};

}  // namespace weft::cuda
