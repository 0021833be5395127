#include "actors/future_actor.hpp"

#include <caf/response_promise.hpp>
#include <caf/typed_response_promise.hpp>

#include <map>
#include <memory>

#include "actors/messages.hpp"

namespace weft {
namespace {

struct Pending {
  caf::response_promise answer;
  Future future;
};

struct FutureActorState {
  std::map<std::uint64_t, Pending> pending;
  std::uint64_t next = 0;
};

caf::behavior future_actor(caf::event_based_actor* self) {
  auto state = std::make_shared<FutureActorState>();
  return {
      [=](const AwaitFuture& request) -> caf::result<Settled> {
        const std::uint64_t id = state->next++;
        caf::response_promise answer = self->make_response_promise();
        state->pending.emplace(id, Pending{answer, request.future});
        virtual_waits::add_awaited(1);
        request.future.on_settled([me = caf::actor_cast<caf::actor>(self), id] {
          shim::anon_send(me,
                          FutureSettled{id, std::make_shared<virtual_waits::MessageInFlight>()});
        });
        return caf::delegated<Settled>();
      },
      [=](const FutureSettled& fact) {
        auto found = state->pending.find(fact.id);
        if (found == state->pending.end()) return;
        found->second.answer.deliver(Settled{found->second.future, fact.in_flight});
        state->pending.erase(found);
        virtual_waits::add_awaited(-1);
      },
      [=](const Stop&) {
        // What settled before the runtime ended is still told.
        for (auto& [id, pending] : state->pending)
          if (pending.future.is_settled()) pending.answer.deliver(Settled{pending.future, {}});
        virtual_waits::add_awaited(-static_cast<int>(state->pending.size()));
        state->pending.clear();
        self->quit();
      },
  };
}

}  // namespace

caf::actor spawn_future_actor(caf::actor_system& system) {
  return system.spawn(future_actor);
}

}  // namespace weft
