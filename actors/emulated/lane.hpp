#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "actors/copy_lane.hpp"
#include "actors/emulated/options.hpp"
#include "actors/emulated/wires.hpp"
#include "actors/pinned_actor.hpp"
#include "framework/cpu.hpp"
#include "framework/fabric.hpp"

namespace weft {

class Tracer;

/// One in-order queue of an emulated GPU or of a link: a thread that takes ops as they were issued,
/// waits for their producers as a device would, computes or copies for real, and settles them no
/// earlier than the modelled time. A late wake-up of the thread does not add up: the next op's time
/// starts where this one's ended.
class EmulatedLane final : public Body, public Cpu, public CopyLane {
 public:
  struct Setup {
    std::string name;                          ///< `gpu0 compute 1`
    std::string device;                        ///< for messages
    const EmulatedOptions* options = nullptr;  ///< borrowed
    Wires* wires = nullptr;                    ///< links only
    Tracer* tracer = nullptr;
    std::uint32_t track = 0;
    const std::atomic<bool>* lost = nullptr;  ///< the device is gone
    LinkLoad* load = nullptr;                 ///< links only: what to publish to
    std::function<void()> on_copied;          ///< links only: bytes are off the lane
  };
  explicit EmulatedLane(Setup setup) : setup_(std::move(setup)), queue_(nullptr) {}

  void push(Op& op) override {
    queued_.fetch_add(1, std::memory_order_relaxed);
    own_copies_.fetch_add(1, std::memory_order_relaxed);
    queue_.push(&op);
  }
  [[nodiscard]] std::size_t queued() const { return queued_.load(std::memory_order_relaxed); }
  /// The hops are in the copy's segment; what passes in between is not kept anywhere.
  void relay(Op& op, std::uint32_t /*via*/) override {
    own_copies_.fetch_sub(1, std::memory_order_relaxed);  // counted by `push`, but no own one
    push(op);
  }
  [[nodiscard]] bool has_room() const override { return busy_bytes() < kByteBudget; }
  [[nodiscard]] bool has_own_copies() const override {
    return own_copies_.load(std::memory_order_relaxed) > 0;
  }
  [[nodiscard]] std::int64_t busy_bytes() const override {
    return busy_bytes_.load(std::memory_order_seq_cst);
  }
  void add_busy_bytes(std::int64_t bytes) override {
    busy_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

  bool run_some() override;
  bool prepare_to_park() override { return queue_.prepare_to_park(); }
  ActorMailbox& mailbox() { return queue_; }
  [[nodiscard]] std::size_t team_size() const override { return 1; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  void share(std::size_t n, std::size_t, Range range) override { range.run(range.body, 0, n); }
  void run(Op& op);
  Failure* wait_for_producers(Op& op);
  Failure* execute(Op& op, Time start, Time& end);
  void copy(Op& op, Time start, Time& end);
  void compute(Op& op, Time start, Time& end);

  Setup setup_;
  ActorMailbox queue_;
  std::atomic<std::size_t> queued_{0};
  static constexpr std::int64_t kByteBudget = 64 << 20;
  std::atomic<std::int64_t> busy_bytes_{0};
  std::atomic<std::int64_t> own_copies_{0};
  Time free_at_{};
};

/// Sleeps and then spins until `time`: precise to about a microsecond on an idle core.
void wait_until(std::chrono::steady_clock::time_point time);

}  // namespace weft
