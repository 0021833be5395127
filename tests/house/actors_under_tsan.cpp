// What the thread sanitizer must say of actors: nothing when they share data through messages, a
// race when they share it behind each other's back (argument `race`). A test of caf_under_tsan.cpp.
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/blocking_actor.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <iostream>
#include <map>
#include <string>

int main(int argc, char** argv) {
  const bool race = argc > 1 && std::string(argv[1]) == "race";
  caf::actor_system_config config;
  caf::actor_system system(config);
  std::map<int, int> handed_over;  // touched only by whoever has been sent a message last
  int shared = 0;

  const auto count = [&](caf::event_based_actor*) -> caf::behavior {
    return {[&](int key) {
      if (race) ++shared;
      return ++handed_over[key];
    }};
  };
  const auto ignore = [](const caf::error&) {};
  for (int i = 0; i < 200; ++i) {
    const auto pooled = system.spawn(count);
    const auto own_thread = system.spawn<caf::detached>(count);
    caf::scoped_actor self(system);
    handed_over[i] = 0;
    auto answer = self->request(pooled, caf::infinite, i);
    if (race) ++shared;
    answer.receive([](int) {}, ignore);
    handed_over[i] += 10;
    self->request(own_thread, caf::infinite, i).receive([](int) {}, ignore);
    self->send_exit(pooled, caf::exit_reason::user_shutdown);
    self->send_exit(own_thread, caf::exit_reason::user_shutdown);
  }
  std::cout << handed_over[7] << " of 12\n";
  return handed_over[7] == 12 ? 0 : 1;
}
