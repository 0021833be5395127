#include "actors/watchdog.hpp"

#include <memory>

#include "actors/messages.hpp"

namespace weft {
namespace {

struct WatchState {
  std::chrono::nanoseconds interval{};
  int quiet_looks = 0;
  bool reported = false;
  std::int64_t last_settled = -1;
  std::function<std::int64_t()> settled, in_flight;
  std::function<void()> report;

  static constexpr int kLooks = 4;  // per silence

  void look() {
    const std::int64_t now = settled();
    if (now != last_settled || in_flight() == 0) {
      last_settled = now;
      quiet_looks = 0;
      reported = false;
    } else if (++quiet_looks >= kLooks && !reported) {
      reported = true;
      report();
    }
  }
};

caf::behavior watchdog(caf::event_based_actor* self, std::shared_ptr<WatchState> state) {
  shim::delayed_send(self, caf::actor_cast<caf::actor>(self), state->interval, Look{});
  return {[=](const Look&) {
    state->look();
    shim::delayed_send(self, caf::actor_cast<caf::actor>(self), state->interval, Look{});
  }};
}

}  // namespace

caf::actor spawn_watchdog(caf::actor_system& system, std::chrono::nanoseconds silence,
                          std::function<std::int64_t()> settled,
                          std::function<std::int64_t()> in_flight, std::function<void()> report) {
  auto state = std::make_shared<WatchState>();
  state->interval = silence / WatchState::kLooks;
  state->settled = std::move(settled);
  state->in_flight = std::move(in_flight);
  state->report = std::move(report);
  return system.spawn(watchdog, std::move(state));
}

}  // namespace weft
