#include "actors/cuda/lane.hpp"

#include <algorithm>
#include <mutex>

#include "actors/cuda/check.hpp"
#include "framework/kernel_code.hpp"
#include "framework/tagged.hpp"
#include "framework/trace.hpp"

namespace weft::cuda {
namespace {

// A mark costs 0.2 us to record and 1.4 to find done (measured on an H200's host): not for every
// small op, but soon enough that others can start close behind what they wait for.
constexpr double kMarkAfterNs = 10'000;
constexpr std::uint32_t kMarkAfterOps = 8;
// Times are floats in milliseconds: the base is moved on before they lose half a microsecond.
constexpr float kMoveBaseMs = 2000;

const char* text_of(cudaError_t status) {
  return cudaGetErrorString(status);
}

}  // namespace

std::uint32_t LaneTable::add(Lane* lane) {
  const std::uint32_t number = count_.fetch_add(1);
  if (number >= kMostLanes)
    throw DeviceError("more than " + std::to_string(kMostLanes) + " lanes in one runtime");
  lanes_[number].store(lane, std::memory_order_release);
  return number;
}

Lane::Lane(Setup setup) : setup_(std::move(setup)) {
  const CurrentDevice current(setup_.device->ordinal());
  WEFT_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  number_ = setup_.table->add(this);
  if (!setup_.tracer) return;
  base_ = timing_event();
  WEFT_CHECK_CUDA(cudaEventRecord(base_, stream_));
  WEFT_CHECK_CUDA(cudaEventSynchronize(base_));
  base_ns_ = setup_.tracer->now();
}

// Errors do not matter here: the device may be lost.
Lane::~Lane() {
  cudaSetDevice(setup_.device->ordinal());
  for (const Mark& mark : marks_) cudaEventDestroy(mark.event);
  for (cudaEvent_t event : spare_) cudaEventDestroy(event);
  for (cudaEvent_t event : spare_timing_) cudaEventDestroy(event);
  if (base_) cudaEventDestroy(base_);
  cudaStreamDestroy(stream_);
}

std::uint64_t Lane::expand(std::uint32_t ticket) const {
  // The op is in flight, so its ticket is one of the last 2^32.
  const std::uint64_t issued = issued_.load(std::memory_order_acquire);
  return issued - (static_cast<std::uint32_t>(issued) - ticket);
}

Failure* Lane::begin(Op& op) {
  Failure* cause = nullptr;
  for (std::size_t i = 0; i < op.wait_count; ++i) {
    Op& producer = *untagged(op.waits()[i]);
    if (!producer.is_settled()) wait_for(producer);
    if (!cause && !is_order_only(op.waits()[i]))
      cause = producer.failure.load(std::memory_order_acquire);
  }
  if (setup_.tracer && !setup_.device->is_lost()) {
    started_ = timing_event();
    cudaEventRecord(started_, stream_);
  }
  if (setup_.device->is_lost()) return setup_.device->loss(op.code->name);
  return cause ? Failure::dependent(cause, op.code->name) : nullptr;
}

void Lane::wait_for(const Op& producer) {
  if (!(producer.lane & LaneTable::kOnMembers)) {
    wait_for(setup_.table->at(producer.lane), producer.ticket);
    return;
  }
  // Its part on this lane's GPU, if it has one there: what it leaves elsewhere is waited for there.
  const std::vector<Lane*>& members = setup_.table->member_lanes();
  auto is_on = [&](std::size_t gpu) { return (producer.lane >> gpu & 1) != 0; };
  for (std::size_t gpu = 0; gpu < members.size(); ++gpu)
    if (is_on(gpu) && &members[gpu]->device() == setup_.device) {
      wait_for(*members[gpu], producer.ticket);
      return;
    }
  for (std::size_t gpu = 0; gpu < members.size(); ++gpu)
    if (is_on(gpu)) wait_for(*members[gpu], producer.ticket);
}

void Lane::wait_for(Lane& other, std::uint32_t ticket) {
  if (&other == this || other.device().is_lost()) return;
  const std::uint64_t wanted = other.expand(ticket);
  if (seen_.size() <= other.number_) seen_.resize(other.number_ + 1);
  std::uint64_t& seen = seen_[other.number_];
  if (seen < wanted) seen = other.make_wait(wanted, *this);
}

std::uint64_t Lane::make_wait(std::uint64_t ticket, Lane& waiter) {
  std::lock_guard lock(lock_);
  // The oldest mark that is late enough. No mark with such a ticket: the op was done and its mark
  // is gone, or it has none yet.
  auto found = std::lower_bound(marks_.begin(), marks_.end(), ticket,
                                [](const Mark& m, std::uint64_t t) { return m.ticket < t; });
  if (found == marks_.end()) {
    mark(issued_.load(std::memory_order_acquire));
    found = std::prev(marks_.end());
  }
  // Under the lock: afterwards the event may be recorded again for a later ticket.
  if (const cudaError_t status = cudaStreamWaitEvent(waiter.stream_, found->event, 0))
    waiter.setup_.device->lose(std::string("cudaStreamWaitEvent: ") + text_of(status));
  return found->ticket;
}

void Lane::mark(std::uint64_t ticket) {
  cudaEvent_t event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
  } else {
    const CurrentDevice current(setup_.device->ordinal());
    WEFT_CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  if (const cudaError_t status = cudaEventRecord(event, stream_))
    setup_.device->lose(std::string("cudaEventRecord: ") + text_of(status));
  marks_.push_back({ticket, event});
}

void Lane::enqueued(Op& op, Failure* failure, double expected_ns) {
  if (failure) {
    // Followers look at it when they are issued, before this op settles.
    Failure* expected = nullptr;
    if (!op.failure.compare_exchange_strong(expected, failure, std::memory_order_acq_rel))
      failure->release();
  }
  const std::uint64_t ticket = issued_.load(std::memory_order_relaxed) + 1;
  op.lane = number_;
  op.ticket = static_cast<std::uint32_t>(ticket);
  enqueue(op, ticket, false);
  since_mark_ns_ += expected_ns;
  ++since_mark_;
  if (since_mark_ns_ < kMarkAfterNs && since_mark_ < kMarkAfterOps && !somebody_waits(op)) return;
  if (setup_.device->is_lost()) return;
  std::lock_guard lock(lock_);
  if (marks_.empty() || marks_.back().ticket < ticket) mark(ticket);
  since_mark_ns_ = 0;
  since_mark_ = 0;
}

void Lane::enqueued_part(Op& op, std::uint64_t ticket) {
  enqueue(op, ticket, true);
  if (setup_.device->is_lost()) return;
  std::lock_guard lock(lock_);
  mark(ticket);
}

void Lane::enqueue(Op& op, std::uint64_t ticket, bool is_part) {
  cudaEvent_t ended = nullptr;
  if (started_) {
    ended = timing_event();
    cudaEventRecord(ended, stream_);
  }
  in_flight_.push_back({&op, ticket, std::exchange(started_, nullptr), ended, is_part});
  issued_.store(ticket, std::memory_order_release);
}

// A follower of the same owner will mostly go on this lane, where it needs no mark.
bool Lane::somebody_waits(Op& op) const {
  if (op.slots[op.first_slot(Stage::Done)].load(std::memory_order_acquire)) return true;
  for (std::size_t i = op.first_slot(Stage::Issued); i < op.end_slot(Stage::Issued); ++i) {
    const std::uintptr_t bits = op.slots[i].load(std::memory_order_acquire);
    if (bits <= Op::kClosed) return false;
    if (Op::follower(bits)->owner != op.owner) return true;
  }
  return false;
}

bool Lane::progress(ReadySink& sink, bool quiet) {
  if (in_flight_.empty()) return false;
  if (setup_.device->is_lost())
    done_ = issued_.load(std::memory_order_relaxed);
  else if (done_ < in_flight_.back().ticket)
    look_at_marks(quiet);
  return settle_done(sink);
}

void Lane::look_at_marks(bool quiet) {
  std::lock_guard lock(lock_);
  const std::uint64_t issued = issued_.load(std::memory_order_relaxed);
  if (quiet && (marks_.empty() || marks_.back().ticket < issued)) {
    mark(issued);
    since_mark_ns_ = 0;
    since_mark_ = 0;
  }
  std::size_t known = 0;  // marks that are done
  for (std::size_t step = 1; known < marks_.size(); step *= 2) {
    const std::size_t at = std::min(known + step, marks_.size()) - 1;
    const cudaError_t status = cudaEventQuery(marks_[at].event);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();  // it would count as an error of the next launch
      break;
    }
    if (status != cudaSuccess) {
      setup_.device->lose(text_of(status));
      done_ = issued;
      return;
    }
    known = at + 1;
  }
  for (; known > 0; --known) {
    done_ = std::max(done_, marks_.front().ticket);
    spare_.push_back(marks_.front().event);
    marks_.pop_front();
  }
}

// An op settles behind its producers, also where the device has gone on: those that follow it take
// it to stand for them, and a failure may still come from there.
bool Lane::has_settled_producers(Op& op, Failure*& cause) const {
  for (std::size_t i = 0; i < op.wait_count; ++i) {
    const Op* producer = untagged(op.waits()[i]);
    if (!producer->is_settled()) return false;
    if (!cause && !is_order_only(op.waits()[i]))
      cause = producer->failure.load(std::memory_order_acquire);
  }
  return true;
}

bool Lane::settle_done(ReadySink& sink) {
  bool did = false;
  while (!in_flight_.empty() && in_flight_.front().ticket <= done_) {
    InFlight entry = in_flight_.front();
    Failure* cause = nullptr;
    if (!has_settled_producers(*entry.op, cause)) break;
    in_flight_.pop_front();
    Failure* failure = nullptr;
    if (!entry.op->failure.load(std::memory_order_acquire)) {
      if (cause)
        failure = Failure::dependent(cause, entry.op->code->name);
      else if (setup_.device->is_lost())
        failure = setup_.device->loss(entry.op->code->name);
    }
    settle_one(entry, failure, sink);
    did = true;
  }
  return did;
}

void Lane::settle_one(InFlight& entry, Failure* failure, ReadySink& sink) {
  const bool failed = failure || entry.op->failure.load(std::memory_order_acquire);
  if (entry.started) record_span(entry, failed);
  if (entry.is_part) {
    setup_.part_done(*entry.op, failure, sink);
    return;
  }
  if (setup_.before_settle) setup_.before_settle(*entry.op, failed);
  settle(entry.op, failure, sink);
}

void Lane::record_span(InFlight& entry, bool failed) {
  float start_ms = 0, end_ms = 0;
  if (!setup_.device->is_lost() &&
      cudaEventElapsedTime(&start_ms, base_, entry.started) == cudaSuccess &&
      cudaEventElapsedTime(&end_ms, base_, entry.ended) == cudaSuccess) {
    auto at = [&](float ms) { return base_ns_ + static_cast<std::int64_t>(1e6 * double{ms}); };
    setup_.tracer->ran(setup_.track, *entry.op, at(start_ms), at(end_ms), failed);
    if (end_ms > kMoveBaseMs) {
      base_ns_ = at(end_ms);
      std::swap(base_, entry.ended);
    }
  } else {
    cudaGetLastError();
  }
  spare_timing_.push_back(entry.started);
  spare_timing_.push_back(entry.ended);
}

cudaEvent_t Lane::timing_event() {
  cudaEvent_t event = nullptr;
  if (spare_timing_.empty()) {
    WEFT_CHECK_CUDA(cudaEventCreate(&event));
  } else {
    event = spare_timing_.back();
    spare_timing_.pop_back();
  }
  return event;
}

}  // namespace weft::cuda
