#pragma once

#include "actors/caf_shim.hpp"

namespace weft {

/// Turns futures into messages: answers each `AwaitFuture` with `Settled` once that future has
/// settled. Event-based; dies with the system or on exit.
caf::actor spawn_future_actor(caf::actor_system& system);

}  // namespace weft
