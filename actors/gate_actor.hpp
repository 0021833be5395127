#pragma once

#include <atomic>

#include "actors/pinned_actor.hpp"
#include "framework/gate.hpp"

namespace weft {

/// Lets submissions through that wait for memory; see `Gate`. Parked while none does.
class GateActor final : public Body {
 public:
  /// `admission` counts what is queued; borrowed, as the fabric. `has_thread`: it runs in real
  /// time.
  GateActor(Fabric& fabric, Admission& admission, bool has_thread)
      : mailbox_(nullptr), gate_(fabric, admission, has_thread, [this] { ask_to_look(); }) {}

  bool run_some() override;
  bool prepare_to_park() override;
  [[nodiscard]] bool must_look_again() const override { return gate_.must_poll(); }

  [[nodiscard]] Gate& gate() { return gate_; }
  ActorMailbox& mailbox() { return mailbox_; }

 private:
  void ask_to_look();

  ActorMailbox mailbox_;  // nothing is pushed: it wakes only
  std::atomic<bool> must_look_{false};
  Gate gate_;
};

}  // namespace weft
