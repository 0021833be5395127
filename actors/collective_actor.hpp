#pragma once

#include <cstdint>
#include <vector>

#include "actors/pinned_actor.hpp"
#include "actors/ready_list.hpp"
#include "framework/collective_plan.hpp"
#include "framework/fabric.hpp"

namespace weft {

class Tracer;

/// What a collective op carries as its scalars. Its arguments are the members' data, then their
/// results if the operation has any.
struct CollectiveCall {
  const CollectivePlan* plan = nullptr;  ///< kept by the collective, which outlives its ops
  const std::vector<Place*>* members = nullptr;
  std::uint32_t element_bytes = 0;
  void (*sum)(void* into, const void* from, std::size_t count) = nullptr;
};

/// Runs the collective operations of all groups in one order, whoever submitted first, so that
/// groups which overlap cannot wait for each other in a circle. An operation whose members' data
/// are issued is taken apart into copies, sent to the links' actors, and sums, sent to the
/// devices'; it settles when all of them have.
class CollectiveActor final : public Body, public ReadySink {
 public:
  CollectiveActor(Fabric& fabric, Admission* admission) : fabric_(fabric), mailbox_(admission) {}

  bool run_some() override;
  bool prepare_to_park() override { return mailbox_.prepare_to_park(); }
  void ready(Op* op) override;

  ActorMailbox& mailbox() { return mailbox_; }

 private:
  Fabric& fabric_;
  ActorMailbox mailbox_;
  ReadyList local_;
};

}  // namespace weft
