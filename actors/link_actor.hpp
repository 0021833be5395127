#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "actors/copy_lane.hpp"
#include "actors/pinned_actor.hpp"
#include "actors/ready_list.hpp"
#include "framework/fabric.hpp"
#include "framework/spin.hpp"

namespace weft {

struct LinkDirection;

/// Another direction that this one may relieve: copies from its GPU to the host can go over to this
/// one's GPU and out of its link.
struct Relief {
  LinkDirection* relieved = nullptr;
  std::uint32_t via = 0;  ///< memory of the GPU in between
  Segment way;            ///< all hops; counts as load of the relieved link
};

/// One direction of a link as copies see it: a mailbox, an in-order lane, a byte budget.
///
/// Copies that the budget holds back although their data are there are *offered*: a direction that
/// is idle and has a way to them takes them. Nobody decides this beforehand.
struct LinkDirection {
  explicit LinkDirection(Admission* admission) : mailbox(admission) {}

  ActorMailbox mailbox;
  ReadyList waiting;  ///< copies that the byte budget holds back, oldest first
  LinkLoad* load = nullptr;
  std::unique_ptr<CopyLane> lane;

  std::vector<LinkDirection*> relievers;  ///< who may take what is offered
  std::deque<Relief> reliefs;             ///< whose offers it may take
  SpinLock offer_lock;
  std::deque<Op*> offered;  ///< oldest first; with the lock
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
  bool relieve(LinkDirection& direction);
  void launch(Op& op, LinkDirection& direction);

  std::array<std::unique_ptr<LinkDirection>, 2> directions_;
};

}  // namespace weft
