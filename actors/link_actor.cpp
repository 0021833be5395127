#include "actors/link_actor.hpp"

#include <algorithm>
#include <mutex>
#include <string>

#include "framework/kernel_code.hpp"
#include "framework/memory_pool.hpp"
#include "framework/submit.hpp"
#include "framework/tagged.hpp"

namespace weft {
namespace {

// Enough for those who may help until the owner looks again.
constexpr std::size_t kMostOffered = 8;

bool has_data(Op& op) {
  for (std::size_t i = 0; i < op.wait_count; ++i)
    if (!untagged(op.waits()[i])->is_settled()) return false;
  return true;
}

// What cannot be had fails the copy behind what it waits for.
void allocate_target(Op& op, const CopyLane& lane) {
  Replica& target = *op.args()[1].replica();
  if (op.failure.load(std::memory_order_relaxed) || target.bytes == 0) return;
  if (Failure* loss = lane.loss(op)) {
    op.failure.store(loss, std::memory_order_release);
    return;
  }
  if (target.data) return;
  target.data = target.pool->allocate(target.bytes);
  if (!target.data)
    op.failure.store(Failure::make(FailureKind::OutOfMemory, op.code->name, target.pool->name(),
                                   target.pool->name() + " has no room left for " +
                                       std::to_string(target.bytes) + " bytes"),
                     std::memory_order_release);
}

// What has to wait though its data are there, for whoever is idle.
void offer(LinkDirection& direction) {
  bool has_offered = false;
  while (Op* op = direction.waiting.front()) {
    if (op->domain == Domain::Host || !has_data(*op)) break;
    allocate_target(*op, *direction.lane);
    std::lock_guard lock(direction.offer_lock);
    if (op->failure.load(std::memory_order_relaxed) || direction.offered.size() >= kMostOffered)
      break;
    direction.offered.push_back(direction.waiting.pop_front());
    has_offered = true;
  }
  if (!has_offered) return;
  for (LinkDirection* reliever : direction.relievers) reliever->mailbox.nudge();
}

// The oldest that `is_wanted` says yes to.
template <class Wanted>
Op* take_offered(LinkDirection& direction, const Wanted& is_wanted) {
  std::lock_guard lock(direction.offer_lock);
  const auto found = std::find_if(direction.offered.begin(), direction.offered.end(),
                                  [&](Op* op) { return is_wanted(*op); });
  if (found == direction.offered.end()) return nullptr;
  Op* op = *found;
  direction.offered.erase(found);
  return op;
}

bool has_offers(LinkDirection& direction) {
  std::lock_guard lock(direction.offer_lock);
  return !direction.offered.empty();
}

// Copies of its own that are not on the lane.
bool has_more(LinkDirection& direction) {
  return !direction.waiting.empty() || has_offers(direction);
}

}  // namespace

LinkActor::LinkActor(Admission* admission) {
  for (auto& direction : directions_) direction = std::make_unique<LinkDirection>(admission);
}

void LinkActor::ready(Op* op) {
  for (auto& direction : directions_)
    if (op->owner == &direction->mailbox) {
      direction->waiting.push_back(op);
      return;
    }
  op->owner->push(op);
}

bool LinkActor::run_some() {
  bool did = false;
  for (auto& direction : directions_) did = run_direction(*direction) || did;
  return did;
}

bool LinkActor::must_look_again() const {
  for (const auto& direction : directions_)
    if (direction->lane && direction->lane->needs_progress()) return true;
  return false;
}

bool LinkActor::prepare_to_park() {
  for (auto& direction : directions_)
    if (!direction->mailbox.prepare_to_park()) return false;
  // Bytes that came free before the flags were set nudged nobody.
  for (auto& direction : directions_)
    if (has_more(*direction) && direction->lane->has_room()) return false;
  return true;
}

bool LinkActor::run_direction(LinkDirection& direction) {
  direction.waiting.append(direction.mailbox.take_ready());
  direction.waiting.append(direction.mailbox.take_submitted());
  bool did = false;
  while (direction.lane->has_room()) {
    Op* op = take_offered(direction, [](Op&) { return true; });  // older than those that wait
    if (!op) op = direction.waiting.pop_front();
    if (!op) break;
    launch(*op, direction);
    did = true;
  }
  if (!direction.relievers.empty()) offer(direction);
  if (!direction.reliefs.empty() && direction.waiting.empty()) did = relieve(direction) || did;
  return direction.lane->progress(*this, direction.waiting.empty()) || did;
}

bool LinkActor::relieve(LinkDirection& direction) {
  bool did = false;
  for (Relief& relief : direction.reliefs) {
    const auto fits = [&](Op& op) {
      return op.args()[0].replica()->memory == relief.way.from &&
             op.args()[1].replica()->memory == relief.way.to;
    };
    // Copies of its own come first: they would wait behind what it takes.
    while (!direction.lane->has_own_copies() && direction.lane->has_room() &&
           has_offers(*relief.relieved) && direction.lane->can_relay(relief.via)) {
      Op* op = take_offered(*relief.relieved, fits);
      if (!op) break;
      auto& range = *static_cast<CopyRange*>(op->scalars());
      range.segment = &relief.way;
      direction.lane->add_busy_bytes(static_cast<std::int64_t>(range.bytes));
      acquire(op);
      direction.lane->relay(*op, relief.via);
      mark_issued(op, *this);
      release(op);
      did = true;
    }
  }
  return did;
}

void LinkActor::launch(Op& op, LinkDirection& direction) {
  allocate_target(op, *direction.lane);
  direction.lane->add_busy_bytes(
      static_cast<std::int64_t>(static_cast<CopyRange*>(op.scalars())->bytes));
  acquire(&op);
  direction.lane->push(op);
  mark_issued(&op, *this);
  release(&op);
}

}  // namespace weft
