#pragma once

#include <caf/event_based_actor.hpp>

#include <utility>

#include "actors/messages.hpp"
#include "actors/runtime.hpp"

namespace weft {

/// The actor that turns `runtime`'s futures into messages.
caf::actor future_actor_of(const Runtime& runtime);

/// Inside an event-based actor: calls `callback(future)` as a message of `self`'s own, once
/// `future` has settled. The callback may submit, and asks `future.failure()` whether it failed.
/// Does not block. For the few futures an actor acts on: each is a request, whose cost grows with
/// those still open.
template <class Callback>
void then(caf::event_based_actor* self, const Runtime& runtime, const Future& future,
          Callback callback) {
  shim::request_then(self, future_actor_of(runtime), AwaitFuture{future},
                     [callback = std::move(callback)](const Settled& settled) mutable {
                       callback(settled.future);
                     });
}

}  // namespace weft
