#include "actors/gate_actor.hpp"

namespace weft {

void GateActor::ask_to_look() {
  must_look_.store(true, std::memory_order_seq_cst);
  mailbox_.nudge();
}

bool GateActor::run_some() {
  const bool is_asked = must_look_.exchange(false, std::memory_order_seq_cst);
  if (!is_asked && !gate_.must_poll()) return false;
  gate_.look();
  return is_asked;
}

bool GateActor::prepare_to_park() {
  if (!mailbox_.prepare_to_park()) return false;
  if (must_look_.load(std::memory_order_seq_cst)) mailbox_.nudge();
  return true;
}

}  // namespace weft
