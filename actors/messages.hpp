#pragma once

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/type_id.hpp>

#include <cstdint>
#include <memory>

#include "actors/caf_shim.hpp"
#include "framework/future.hpp"
#include "framework/virtual_waits.hpp"

namespace weft {

/// To a parked device or link actor: its mailbox of ops has something. One message stands for a
/// batch.
struct Wake {};
/// To a device or link actor: end after what you have.
struct Stop {};
/// To the future actor: answer when the future has settled.
struct AwaitFuture {
  Future future;
};
/// The answer, and the message that `then` turns into a call.
struct Settled {
  Future future;
  std::shared_ptr<virtual_waits::MessageInFlight> in_flight;
};
/// To the future actor, from whoever settled the future that request `id` waits for.
struct FutureSettled {
  std::uint64_t id = 0;
  std::shared_ptr<virtual_waits::MessageInFlight> in_flight;
};
/// To the watchdog: look again.
struct Look {};

}  // namespace weft

CAF_BEGIN_TYPE_ID_BLOCK(weft, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(weft, (weft::Wake))
CAF_ADD_TYPE_ID(weft, (weft::Stop))
CAF_ADD_TYPE_ID(weft, (weft::AwaitFuture))
CAF_ADD_TYPE_ID(weft, (weft::Settled))
CAF_ADD_TYPE_ID(weft, (weft::FutureSettled))
CAF_ADD_TYPE_ID(weft, (weft::Look))
CAF_END_TYPE_ID_BLOCK(weft)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::Wake)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::Stop)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::AwaitFuture)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::Settled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::FutureSettled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::Look)
