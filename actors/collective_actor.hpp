#pragma once

#include <cstdint>
#include <vector>

#include "actors/device_collectives.hpp"
#include "actors/pinned_actor.hpp"
#include "actors/ready_list.hpp"
#include "framework/collective_plan.hpp"
#include "framework/fabric.hpp"

namespace weft {

class Tracer;

/// What a collective op carries as its scalars. Its arguments are the members' data, then their
/// results if the operation has any.
struct CollectiveCall {
  /// Kept by the collective, which outlives its ops; null: the devices run it at once.
  const CollectivePlan* plan = nullptr;
  DeviceOperation operation;
  const std::vector<Place*>* members = nullptr;
  std::uint32_t element_bytes = 0;
  void (*sum)(void* into, const void* from, std::size_t count) = nullptr;
};

/// Runs the collective operations of all groups in one order, whoever submitted first, so that
/// groups which overlap cannot wait for each other in a circle. An operation whose members' data
/// are issued runs on the devices at once, where they can, or is taken apart into copies, sent to
/// the links' actors, and sums, sent to the devices'; it settles when all of them have.
class CollectiveActor final : public Body, public ReadySink {
 public:
  /// `devices`: null where no device does more than steps; borrowed.
  CollectiveActor(Fabric& fabric, Admission* admission, DeviceCollectives* devices)
      : fabric_(fabric), devices_(devices), mailbox_(admission) {}

  bool run_some() override;
  bool prepare_to_park() override { return !must_look_again() && mailbox_.prepare_to_park(); }
  [[nodiscard]] bool must_look_again() const override {
    return devices_ && devices_->needs_progress();
  }
  void ready(Op* op) override;

  ActorMailbox& mailbox() { return mailbox_; }
  [[nodiscard]] DeviceCollectives* devices() const { return devices_; }

 private:
  void launch(Op& op);

  Fabric& fabric_;
  DeviceCollectives* const devices_;
  ActorMailbox mailbox_;
  ReadyList local_;
};

}  // namespace weft
