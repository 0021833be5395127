#include "framework/admit.hpp"

#include "framework/admission.hpp"
#include "framework/gate.hpp"
#include "framework/spin.hpp"
#include "framework/virtual_waits.hpp"

namespace weft {

InHand::~InHand() {
  fabric_.in_hand.let_out();
  if (fabric_.gate && fabric_.gate->is_shut()) fabric_.gate->ask_to_look();
}

void wait_for_room(Admission& admission) {
  if (admission.has_room() || thread_must_not_wait()) return;
  // Until there is room for many: each look takes cache lines from those that run the ops, and on a
  // core that is shared with them, so does going on after each op that ends.
  const std::int64_t many = admission.limit() / 8;
  virtual_waits::wait_in_any_time([&] { return admission.has_room(many); });
}

bool wait_for_memory(const Fabric& fabric, const MemoryPool& pool, std::size_t bytes) {
  if (bytes > pool.budget()) return false;
  constexpr std::int64_t kLook = 1'000'000;  // ns of virtual time
  bool has_room = false;
  wait_and_sleep([&] {
    const bool quiet = fabric.in_flight() == 0;  // before the look: what settled has freed
    has_room = pool.room() >= bytes;
    if (has_room || quiet) return true;
    if (virtual_waits::any()) virtual_waits::wait_for([&] { return pool.room() >= bytes; }, kLook);
    return false;
  });
  return has_room;
}

namespace {

std::string use_of(const MemoryPool& pool) {
  return std::to_string(pool.budget()) + " bytes, " + std::to_string(pool.reserved()) + " in use" +
         (pool.has_run_out() ? ", and the rest cannot be had" : "");
}

}  // namespace

std::string out_of_memory(const MemoryPool& pool, std::size_t bytes) {
  std::string text = "wanted " + std::to_string(bytes) + " bytes in " + pool.name() +
                     ", which has " + use_of(pool);
  if (const MemoryPool* below = pool.below())
    text += "; " + below->name() + " has " + use_of(*below);
  return text;
}

}  // namespace weft
