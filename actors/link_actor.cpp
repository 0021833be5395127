#include "actors/link_actor.hpp"

#include "framework/kernel_code.hpp"
#include "framework/memory_pool.hpp"
#include "framework/submit.hpp"

namespace weft {

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
    if (!direction->waiting.empty() &&
        direction->lane->busy_bytes() < direction->lane->byte_budget())
      return false;
  return true;
}

bool LinkActor::run_direction(LinkDirection& direction) {
  direction.waiting.append(direction.mailbox.take_ready());
  direction.waiting.append(direction.mailbox.take_submitted());
  bool did = false;
  while (!direction.waiting.empty()) {
    if (direction.lane->busy_bytes() >= direction.lane->byte_budget()) break;
    launch(*direction.waiting.pop_front(), direction);
    did = true;
  }
  return direction.lane->progress(*this, direction.waiting.empty()) || did;
}

void LinkActor::launch(Op& op, LinkDirection& direction) {
  const auto& range = *static_cast<CopyRange*>(op.scalars());
  Replica& target = *op.args()[1].replica();
  if (!target.data && target.bytes > 0) {
    target.data = target.pool->allocate(target.bytes);
    if (!target.data)  // it fails behind what it waits for
      op.failure.store(Failure::make(FailureKind::OutOfMemory, op.code->name, target.pool->name(),
                                     "the engine has no memory left for " +
                                         std::to_string(target.bytes) + " bytes"),
                       std::memory_order_release);
  }
  direction.lane->add_busy_bytes(static_cast<std::int64_t>(range.bytes));
  acquire(&op);
  direction.lane->push(op);
  mark_issued(&op, *this);
  release(&op);
}

}  // namespace weft
