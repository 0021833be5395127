#pragma once

#include <chrono>
#include <functional>

#include "actors/caf_shim.hpp"

namespace weft {

/// Watches progress: `settled` and `in_flight` are asked now and then, and if nothing settles for
/// `silence` though something is pending, `report` is called once per stall. Ends on exit.
caf::actor spawn_watchdog(caf::actor_system& system, std::chrono::nanoseconds silence,
                          std::function<std::int64_t()> settled,
                          std::function<std::int64_t()> in_flight, std::function<void()> report);

}  // namespace weft
