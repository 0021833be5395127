#include "actors/gpu_actor.hpp"

#include "framework/bundle.hpp"
#include "framework/kernel_code.hpp"
#include "framework/submit.hpp"
#include "framework/tagged.hpp"

namespace weft {
GpuActor::GpuActor(Place& place, Engine& engine)
    : place_(place),
      engine_(engine),
      mailbox_(place.admission.get()),
      local_(engine.takes_by_submission()) {
  place.lanes.push_back(&mailbox_);
}

void GpuActor::ready(Op* op) {
  if (op->owner == &mailbox_)
    local_.push(op);
  else
    op->owner->push(op);
}

bool GpuActor::run_some() {
  local_.append(mailbox_.take_ready());
  local_.append(mailbox_.take_submitted());
  // A few at a time: what has come for the links that share the thread starts in between.
  constexpr int kBatch = 8;
  int launched = 0;
  while (launched < kBatch && !local_.empty() && engine_.has_room()) {
    launch(*local_.pop());
    ++launched;
  }
  return engine_.progress(*this, local_.empty()) || launched > 0;
}

void GpuActor::launch(Op& op) {
  // An op that cannot run takes its place all the same: it fails behind what it waits for.
  Failure* failure = engine_.loss(op);
  if (failure) place_.is_lost.store(true, std::memory_order_relaxed);
  if (!failure) failure = allocate_outputs(op, place_);
  op.failure.store(failure, std::memory_order_release);
  const std::uint32_t lane = op.code == &bundle_kernel() ? lane_of_bundle(op) : choose_lane(op);
  op.lane = engine_.first_lane() + lane;
  acquire(&op);  // the engine may settle it before its followers are told
  engine_.issue(op, lane);
  mark_issued(&op, *this);
  release(&op);
}

// What an engine keeps with a bundle may be a lane's own.
std::uint32_t GpuActor::lane_of_bundle(Op& op) {
  Bundle::Site& site = bundle_of(op).site();
  if (site.lane == Bundle::Site::kAnyLane) site.lane = choose_lane(op);
  return site.lane;
}

std::uint32_t GpuActor::choose_lane(Op& op) {
  const std::uint32_t lanes = engine_.lanes_for(op);
  if (lanes == 1) return 0;
  const bool is_short = engine_.is_short(op);
  // Behind the newest producer that is still under way here and has no other follower yet: on the
  // same lane there is nothing to wait for. A short op gains less beside another follower than it
  // costs to wait on another lane. Others that were put behind the producer meanwhile would be
  // waited for too: then a lane with nothing ahead is better.
  for (std::size_t i = op.wait_count; i-- > 0;) {
    Op* producer = untagged(op.waits()[i]);
    if (producer->device != op.device || producer->code->is_copy || producer->code->is_collective ||
        producer->is_settled())
      continue;
    // One that failed before it was launched is on no lane.
    const std::uint32_t lane = producer->lane - engine_.first_lane();
    if (lane < engine_.lanes() &&
        (!producer->has_heir.exchange(true, std::memory_order_relaxed) || is_short)) {
      if (is_short) return lane;
      if (engine_.is_tail(*producer) || !has_empty_lane(lanes)) return lane_beside(lane, lanes);
      break;
    }
  }
  std::uint32_t best = next_lane_++ % lanes;
  for (std::uint32_t i = 0; i < lanes; ++i)
    if (engine_.queued(i) < engine_.queued(best)) best = i;
  return best;
}

// An op that neither fills the device nor is short leaves a lane of large ops, if there are more of
// them: then it goes first, and they go on beside it.
std::uint32_t GpuActor::lane_beside(std::uint32_t lane, std::uint32_t lanes) const {
  const std::uint32_t small = engine_.first_small_lane();
  if (lane >= small || lanes < engine_.lanes()) return lane;
  bool is_busy = false;
  for (std::uint32_t i = 0; i < small; ++i)
    is_busy = is_busy || (i != lane && engine_.queued(i) > 0);
  for (std::uint32_t i = small; is_busy && i < lanes; ++i)
    if (engine_.queued(i) == 0) return i;
  return lane;
}

bool GpuActor::has_empty_lane(std::uint32_t lanes) const {
  for (std::uint32_t i = 0; i < lanes; ++i)
    if (engine_.queued(i) == 0) return true;
  return false;
}

}  // namespace weft
