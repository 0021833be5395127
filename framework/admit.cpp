#include "framework/admit.hpp"

#include <chrono>
#include <thread>

#include "framework/admission.hpp"
#include "framework/spin.hpp"
#include "framework/virtual_waits.hpp"

namespace weft {

void wait_for_room(Admission& admission) {
  if (admission.has_room() || thread_must_not_wait()) return;
  // Until there is room for many: each look takes cache lines from those that run the ops, and on a
  // core that is shared with them, so does going on after each op that ends.
  const std::int64_t many = admission.limit() / 8;
  if (virtual_waits::any()) virtual_waits::wait([&] { return admission.has_room(many); });
  Backoff backoff;
  while (!admission.has_room(many)) {
    backoff.pause();
    if (backoff.rounds() > 2000) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool wait_for_memory(const Fabric& fabric, const MemoryPool& pool, std::size_t bytes) {
  if (bytes > pool.budget()) return false;
  constexpr std::int64_t kLook = 1'000'000;  // ns of virtual time
  Backoff backoff;
  for (;;) {
    const bool quiet = fabric.in_flight() == 0;  // before the look: what settled has freed
    if (pool.room() >= bytes) return true;
    if (quiet) return false;
    if (virtual_waits::any()) virtual_waits::wait_for([&] { return pool.room() >= bytes; }, kLook);
    backoff.pause();
    if (backoff.rounds() > 2000) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

std::string out_of_memory(const MemoryPool& pool, std::size_t bytes) {
  return "wanted " + std::to_string(bytes) + " bytes in " + pool.name() + ", which has " +
         std::to_string(pool.budget()) + " bytes, " + std::to_string(pool.reserved()) + " in use";
}

}  // namespace weft
