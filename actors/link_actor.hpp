#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "actors/copy_lane.hpp"
#include "actors/pinned_actor.hpp"
#include "actors/ready_list.hpp"
#include "framework/fabric.hpp"

namespace weft {

/// One direction of a link as copies see it: a mailbox, an in-order lane, a byte budget.
struct LinkDirection {
  explicit LinkDirection(Admission* admission) : mailbox(admission) {}

  ActorMailbox mailbox;
  ReadyList waiting;  ///< copies that the byte budget holds back, oldest first
  LinkLoad* load = nullptr;
  std::unique_ptr<CopyLane> lane;
};

/// A physical hop: takes copies whose producers are issued and launches them on the lane of their
/// direction, at most its byte budget ahead, so that its published queue is what it will really do
/// next.
class LinkActor final : public Body, public ReadySink {
 public:
  explicit LinkActor(Admission* admission);

  bool run_some() override;
  bool prepare_to_park() override;
  [[nodiscard]] bool must_look_again() const override;
  void ready(Op* op) override;

  /// 0: from the link's `a` to its `b`.
  LinkDirection& direction(std::size_t index) { return *directions_[index]; }

 private:
  bool run_direction(LinkDirection& direction);
  void launch(Op& op, LinkDirection& direction);

  std::array<std::unique_ptr<LinkDirection>, 2> directions_;
};

}  // namespace weft
