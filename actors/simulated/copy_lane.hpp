#pragma once

#include <cstdint>
#include <functional>

#include "actors/copy_lane.hpp"
#include "actors/simulated/lane.hpp"
#include "framework/fabric.hpp"

namespace weft {

/// One direction of a link in virtual time: its copies, one after the other, share every hop of
/// their way with the copies of other links.
class SimulatedCopyLane final : public CopyLane, public SimulatedLane {
 public:
  /// Hop number h of segments is resource `first_hop` + h. `load` is what the link publishes;
  /// `on_copied` is called when bytes are off the lane.
  SimulatedCopyLane(Setup setup, std::uint32_t first_hop, LinkLoad& load,
                    std::function<void()> on_copied)
      : SimulatedLane(std::move(setup)),
        first_hop_(first_hop),
        load_(load),
        on_copied_(std::move(on_copied)) {}

  void push(Op& op) override {
    ++own_copies_;
    relay(op, 0);
  }
  void relay(Op& op, std::uint32_t /*via*/) override {
    enqueue(op, setup().simulation->program().of(op.id));
  }
  void add_busy_bytes(std::int64_t bytes) override { busy_bytes_ += bytes; }
  [[nodiscard]] std::int64_t busy_bytes() const override { return busy_bytes_; }
  [[nodiscard]] bool has_room() const override { return busy_bytes_ < kByteBudget; }
  [[nodiscard]] bool has_own_copies() const override { return own_copies_ > 0; }

 private:
  void estimate(Op& op, Work& work) override;
  void execute(Op& op) override;
  void ends(Op& op, bool ran, VirtualTime::Ns start) override;
  void ended(std::int64_t bytes) override;

  static constexpr std::int64_t kByteBudget = 64 << 20;
  const std::uint32_t first_hop_;
  LinkLoad& load_;
  const std::function<void()> on_copied_;
  std::int64_t busy_bytes_ = 0, own_copies_ = 0;
};

}  // namespace weft
