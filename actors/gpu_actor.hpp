#pragma once

#include <memory>

#include "actors/pinned_actor.hpp"
#include "actors/ready_heap.hpp"
#include "framework/engine.hpp"
#include "framework/fabric.hpp"

namespace weft {

/// A GPU: takes ops whose producers are issued, chooses a lane for each and launches it there. A
/// follower of the last op of a lane goes on the same lane, where order costs nothing; what is
/// independent goes to the lane with the least ahead of it. Its own successors never pass through
/// the mailbox.
class GpuActor final : public Body, public ReadySink {
 public:
  GpuActor(Place& place, Engine& engine);

  bool run_some() override;
  bool prepare_to_park() override { return !must_look_again() && mailbox_.prepare_to_park(); }
  [[nodiscard]] bool must_look_again() const override {
    return !local_.empty() || engine_.needs_progress();
  }
  void ready(Op* op) override;

  ActorMailbox& mailbox() { return mailbox_; }

 private:
  void launch(Op& op);
  [[nodiscard]] std::uint32_t choose_lane(Op& op);
  [[nodiscard]] std::uint32_t lane_of_bundle(Op& op);
  [[nodiscard]] bool has_empty_lane(std::uint32_t lanes) const;
  [[nodiscard]] std::uint32_t lane_beside(std::uint32_t lane, std::uint32_t lanes) const;

  Place& place_;
  Engine& engine_;
  ActorMailbox mailbox_;
  ReadyHeap local_;
  std::uint32_t next_lane_ = 0;
};

}  // namespace weft
