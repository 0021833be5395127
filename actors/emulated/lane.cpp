#include "actors/emulated/lane.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "framework/future.hpp"
#include "framework/kernel_code.hpp"
#include "framework/memory_pool.hpp"
#include "framework/placer.hpp"
#include "framework/spin.hpp"
#include "framework/submit.hpp"
#include "framework/tagged.hpp"
#include "framework/trace.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

// Copies are moved in pieces, so that those that share a link take turns.
constexpr std::size_t kPiece = 1 << 20;

// Waits as a device does: the thread is the lane, so it may sleep.
void wait_settled(Op* producer) {
  if (producer->is_settled()) return;
  Backoff backoff;
  while (!producer->is_settled()) {
    backoff.pause();
    if (backoff.rounds() > 256) break;
  }
  if (producer->is_settled()) return;
  acquire(producer);
  const bool was = std::exchange(thread_must_not_wait(), false);
  try {
    Future(producer).wait();
  } catch (const OpError&) {
    // The caller looks at the failure.
  }
  thread_must_not_wait() = was;
}

}  // namespace

void wait_until(Clock::time_point time) {
  constexpr auto kSlack = std::chrono::microseconds(80);  // a timer's wake-up may be this late
  for (;;) {
    const auto left = time - Clock::now();
    if (left <= std::chrono::nanoseconds(0)) return;
    if (left > kSlack)
      std::this_thread::sleep_for(left - kSlack);
    else
      std::this_thread::yield();
  }
}

bool EmulatedLane::run_some() {
  Op* op = queue_.take_ready();
  if (!op) return false;
  while (op) {
    Op* next = op->next;
    run(*op);
    op = next;
  }
  return true;
}

void EmulatedLane::run(Op& op) {
  Failure* failure = wait_for_producers(op);
  const bool refused =
      op.failure.load(std::memory_order_relaxed) != nullptr;  // before it came here
  const Time now = Clock::now();
  // A lane that was busy until just now goes on from its modelled end, not from when its thread
  // woke.
  const Time start =
      now - free_at_ < std::chrono::microseconds(200) ? std::min(free_at_, now) : now;
  Time end = start;
  if (!failure && !refused) failure = execute(op, start, end);
  if (end > start) wait_until(end);
  const Time finished = Clock::now();
  free_at_ = std::min(std::max(end, now), finished);
  const CopyRange* range = op.code->is_copy ? static_cast<CopyRange*>(op.scalars()) : nullptr;
  const std::int64_t bytes = range ? static_cast<std::int64_t>(range->bytes) : 0;
  LinkLoad* load = range ? range->segment->load : nullptr;  // of another link, if it is a relief
  if (setup_.tracer)
    setup_.tracer->ran(setup_.track, op, setup_.tracer->at(now), setup_.tracer->at(finished),
                       failure != nullptr);
  if (!failure && !refused && !range)
    note_run(op, std::chrono::duration<double>(std::max(finished - now, end - start)).count());
  if (load && load == setup_.load && bytes > 0 && !failure && !refused) {
    const double seconds = std::chrono::duration<double>(finished - now).count();
    auto& rate = setup_.load->bytes_per_second;
    if (seconds > 0 && bytes >= (64 << 10))
      rate.store(
          0.8 * rate.load(std::memory_order_relaxed) + 0.2 * static_cast<double>(bytes) / seconds,
          std::memory_order_relaxed);
  }
  if (load) load->queued_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  if (load == setup_.load) own_copies_.fetch_sub(1, std::memory_order_relaxed);
  queued_.fetch_sub(1, std::memory_order_relaxed);
  settle(&op, failure, send_to_owner());
  if (bytes > 0) {
    busy_bytes_.fetch_sub(bytes, std::memory_order_seq_cst);
    if (setup_.on_copied) setup_.on_copied();
  }
}

Failure* EmulatedLane::wait_for_producers(Op& op) {
  // For all of them, whatever fails: those that follow this op take it to stand for them.
  Failure* cause = nullptr;
  for (std::size_t i = 0; i < op.wait_count; ++i) {
    Op* producer = untagged(op.waits()[i]);
    wait_settled(producer);
    if (!cause && !is_order_only(op.waits()[i]))
      cause = producer->failure.load(std::memory_order_acquire);
  }
  return cause ? Failure::dependent(cause, op.code->name) : nullptr;
}

Failure* EmulatedLane::execute(Op& op, Time start, Time& end) {
  const EmulatedOptions& options = *setup_.options;
  if (setup_.lost && setup_.lost->load(std::memory_order_acquire))
    return Failure::make(FailureKind::DeviceLost, op.code->name, setup_.device,
                         "the device was lost");
  const std::size_t bytes = copied_bytes(op);
  const LaneOp described{op.code->name, setup_.name, bytes};
  if (options.fault)
    if (auto message = options.fault(described))
      return Failure::make(FailureKind::Injected, op.code->name, setup_.device, *message);
  try {
    if (op.code->is_copy)
      copy(op, start, end);
    else
      compute(op, start, end);
  } catch (const std::exception& error) {
    return Failure::make(FailureKind::KernelThrew, op.code->name, setup_.device, error.what());
  } catch (...) {
    return Failure::make(FailureKind::KernelThrew, op.code->name, setup_.device,
                         "unknown exception");
  }
  if (options.delay) end = std::max(end, start) + options.delay(described);
  return nullptr;
}

void EmulatedLane::copy(Op& op, Time start, Time& end) {
  const auto& range = *static_cast<CopyRange*>(op.scalars());
  const auto* from = static_cast<const char*>(op.args()[0].replica()->data);
  auto* to = static_cast<char*>(op.args()[1].replica()->data);
  const bool timed = setup_.wires && setup_.wires->is_timed(range.segment->hops);
  for (std::size_t done = 0; done < range.bytes; done += kPiece) {
    const std::size_t piece = std::min(kPiece, range.bytes - done);
    std::memcpy(to + range.to_offset + done, from + range.offset + done, piece);
    if (!timed) continue;
    end = setup_.wires->pass(range.segment->hops, piece, std::max(start, end));
    // One piece ahead at most: others get their turn on the shared hops.
    if (done + piece < range.bytes) wait_until(end - std::chrono::microseconds(100));
  }
  if (setup_.options->link_latency.count() > 0)
    end = std::max(end, start) + setup_.options->link_latency;
}

void EmulatedLane::compute(Op& op, Time start, Time& end) {
  const EmulatedOptions& options = *setup_.options;
  op.code->cpu(*this, op);
  end = start + options.launch;
  if (!op.code->cost || (options.flops_per_second <= 0 && options.memory_bytes_per_second <= 0))
    return;
  const Cost cost = op.code->cost(op);
  double seconds = 0;
  if (options.flops_per_second > 0) seconds = cost.flops / options.flops_per_second;
  if (options.memory_bytes_per_second > 0)
    seconds = std::max(seconds, cost.bytes / options.memory_bytes_per_second);
  end += std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * seconds));
}

}  // namespace weft
