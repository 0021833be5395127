#pragma once

#include "actors/caf_shim.hpp"

namespace weft {

/// Turns futures into messages: answers each `AwaitFuture` with `Settled` once that future has
/// settled. On `Stop` it answers those that have, refuses the others, and ends. Event-based.
caf::actor spawn_future_actor(caf::actor_system& system);

}  // namespace weft
