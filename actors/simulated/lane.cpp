#include "actors/simulated/lane.hpp"

#include <cmath>

#include "framework/future.hpp"
#include "framework/kernel_code.hpp"
#include "framework/placer.hpp"
#include "framework/submit.hpp"
#include "framework/tagged.hpp"
#include "framework/trace.hpp"

namespace weft {

void SimulatedLane::enqueue(Op& op, VirtualTime::Ns ready_at) {
  queue_.push_back({&op, ready_at});
  if (!is_running_) setup_.simulation->wake(*this);
}

void SimulatedLane::run() {
  if (is_running_ || queue_.empty()) return;
  const Queued& first = queue_.front();
  Op& op = *first.op;
  if (!has_producers_done(op)) return;
  if (first.ready_at > time().now()) {
    time().schedule(delay_, first.ready_at);
    return;
  }
  time().cancel(delay_);  // it may have been about to look, at this very moment
  is_running_ = true;
  start_ = time().now();
  failure_ = failure_of_producers(op);
  is_refused_ = op.failure.load(std::memory_order_relaxed) != nullptr;  // before it came here
  if (failure_ || is_refused_ || (failure_ = try_execute(op)) || (failure_ = try_estimate(op))) {
    end();
    return;
  }
  if (setup_.hooks->delay)
    work_.fixed += setup_.hooks->delay({op.code->name, setup_.name, copied_bytes(op)}).count();
  if (work_.fixed > 0)
    time().schedule(delay_, start_ + work_.fixed);
  else
    flow();
}

// All of them, whatever fails: those that follow this op take it to stand for them.
bool SimulatedLane::has_producers_done(Op& op) {
  for (std::size_t i = 0; i < op.wait_count; ++i) {
    Op* producer = untagged(op.waits()[i]);
    if (producer->is_settled()) continue;
    if (awaited_ != producer) {
      awaited_ = producer;
      acquire(producer);
      Future(producer).on_settled([this] {
        awaited_ = nullptr;
        setup_.simulation->wake(*this);
      });
    }
    return false;
  }
  return true;
}

Failure* SimulatedLane::failure_of_producers(Op& op) const {
  for (std::size_t i = 0; i < op.wait_count; ++i)
    if (!is_order_only(op.waits()[i]))
      if (Failure* cause = untagged(op.waits()[i])->failure.load(std::memory_order_acquire))
        return Failure::dependent(cause, op.code->name);
  return nullptr;
}

Failure* SimulatedLane::try_execute(Op& op) {
  auto failed = [&](FailureKind kind, const std::string& message) {
    return Failure::make(kind, op.code->name, setup_.device, message);
  };
  if (setup_.lost && setup_.lost->load(std::memory_order_acquire))
    return failed(FailureKind::DeviceLost, "the device was lost");
  if (setup_.hooks->fault) {
    if (auto message = setup_.hooks->fault({op.code->name, setup_.name, copied_bytes(op)}))
      return failed(FailureKind::Injected, *message);
  }
  if (Failure* failure = prepare(op)) return failure;
  if (!setup_.has_data) return nullptr;
  try {
    execute(op);
  } catch (const std::exception& error) {
    return failed(FailureKind::KernelThrew, error.what());
  } catch (...) {
    return failed(FailureKind::KernelThrew, "unknown exception");
  }
  return nullptr;
}

// What a kernel of the program says it costs may be anything.
Failure* SimulatedLane::try_estimate(Op& op) {
  work_.fixed = 0;
  work_.amount = 0;
  work_.uses.clear();
  work_.limit = FairShare::kUnlimited;
  std::string problem = "not a finite number";
  try {
    estimate(op, work_);
    bool is_finite = std::isfinite(work_.amount);
    for (const FairShare::Use& use : work_.uses) is_finite = is_finite && std::isfinite(use.units);
    if (is_finite) return nullptr;
  } catch (const std::exception& error) {
    problem = error.what();
  } catch (...) {
    problem = "unknown exception";
  }
  return Failure::make(FailureKind::KernelThrew, op.code->name, setup_.device,
                       "its cost: " + problem);
}

void SimulatedLane::delay_over() {
  if (is_running_)
    flow();
  else
    run();  // it was not ready before
}

void SimulatedLane::flow() {
  if (work_.amount > 0)
    setup_.simulation->share().start(flowing_, work_.amount, work_.uses, work_.limit);
  else
    end();
}

void SimulatedLane::end() {
  Op& op = *queue_.front().op;
  queue_.pop_front();
  Failure* failure = std::exchange(failure_, nullptr);
  if (setup_.tracer)
    setup_.tracer->ran(setup_.track, op, start_, time().now(), failure || is_refused_);
  if (!failure && !is_refused_) note_run(op, 1e-9 * static_cast<double>(time().now() - start_));
  const auto bytes = static_cast<std::int64_t>(copied_bytes(op));
  ends(op, !failure && !is_refused_, start_);
  is_running_ = false;
  settle(&op, failure, send_to_owner());
  ended(bytes);
  if (!queue_.empty()) setup_.simulation->wake(*this);
}

}  // namespace weft
