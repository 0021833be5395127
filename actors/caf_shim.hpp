#pragma once

// CAF 0.17.6 (Debian, Ubuntu) and 1.x (vcpkg, Conan) from one source. `CAF_VERSION` is 1706 in one
// and 0100 in the other, so `CAF_MAJOR_VERSION` decides.

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/blocking_actor.hpp>
#include <caf/config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#if CAF_MAJOR_VERSION == 0
#include <caf/atom.hpp>
#endif

#include <cstddef>
#include <utility>

#if CAF_MAJOR_VERSION >= 1
#define WEFT_CAF1 1
#include <caf/anon_mail.hpp>
#include <caf/init_global_meta_objects.hpp>
#endif

namespace weft::shim {

/// Sends a message without a sender. Any thread.
template <class Destination, class... Values>
void anon_send(const Destination& destination, Values&&... values) {
#ifdef WEFT_CAF1
  caf::anon_mail(std::forward<Values>(values)...).send(destination);
#else
  caf::anon_send(destination, std::forward<Values>(values)...);
#endif
}

/// Sends a message as `self`.
template <class Self, class Destination, class... Values>
void send(Self* self, const Destination& destination, Values&&... values) {
#ifdef WEFT_CAF1
  self->mail(std::forward<Values>(values)...).send(destination);
#else
  self->send(destination, std::forward<Values>(values)...);
#endif
}

/// Sends a message as `self` after `delay`.
template <class Self, class Destination, class Duration, class... Values>
void delayed_send(Self* self, const Destination& destination, Duration delay, Values&&... values) {
#ifdef WEFT_CAF1
  self->mail(std::forward<Values>(values)...).delay(delay).send(destination);
#else
  self->delayed_send(destination, delay, std::forward<Values>(values)...);
#endif
}

/// Asks `destination` and calls `then` with the answer.
template <class Self, class Destination, class Then, class Message>
void request_then(Self* self, const Destination& destination, Message&& message, Then then) {
#ifdef WEFT_CAF1
  self->mail(std::forward<Message>(message))
      .request(destination, caf::infinite)
      .then(std::move(then));
#else
  self->request(destination, caf::infinite, std::forward<Message>(message)).then(std::move(then));
#endif
}

/// Number of threads of the scheduler for event-based actors. They share one queue: with a queue
/// each, they would wake up to look into the others' while there is nothing to do.
inline void set_threads(caf::actor_system_config& config, std::size_t threads) {
#ifdef WEFT_CAF1
  config.set("caf.scheduler.max-threads", threads);
  config.set("caf.scheduler.policy", "sharing");
#else
  config.set("scheduler.max-threads", threads);
  config.set("scheduler.policy", caf::atom_from_string("sharing"));
#endif
}

/// Registers a block of message types; before the actor system is made.
template <class Block>
void init() {
#ifdef WEFT_CAF1
  caf::init_global_meta_objects<Block>();
  caf::core::init_global_meta_objects();
#endif
}

}  // namespace weft::shim
