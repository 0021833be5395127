#include "actors/cuda/lane.hpp"

#include <algorithm>
#include <mutex>

#include "actors/cuda/check.hpp"
#include "framework/kernel_code.hpp"
#include "framework/placer.hpp"
#include "framework/tagged.hpp"
#include "framework/tick_clock.hpp"
#include "framework/trace.hpp"

namespace weft::cuda {
namespace {

// A mark costs 0.2 us to record and 1.4 to find done (measured on an H200's host): not for every
// small op, but soon enough that others can start close behind what they wait for.
constexpr double kMarkAfterNs = 20'000;
constexpr std::uint32_t kMarkAfterOps = 16;
constexpr double kLookAfterNs = 15'000;
// Times are floats in milliseconds: the base is moved on before they lose half a microsecond.
constexpr float kMoveBaseMs = 2000;

// Whether one of the op's followers is wanted. Those beyond the slots in its block are not looked
// at one by one: of so many one will be.
template <class Wanted>
bool has_follower(Op& op, Stage stage, const Wanted& is_wanted) {
  for (std::size_t i = op.first_slot(stage); i < op.end_slot(stage); ++i) {
    const std::uintptr_t bits = op.slots[i].load(std::memory_order_acquire);
    if (bits <= Op::kClosed) return false;
    if (is_wanted(*Op::follower(bits))) return true;
  }
  return op.more[static_cast<std::size_t>(stage)].load(std::memory_order_acquire) > Op::kClosed;
}

const char* reason_of(cudaError_t status) {
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
  int least = 0, greatest = 0;
  WEFT_CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  WEFT_CHECK_CUDA(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                               setup_.is_first ? greatest : least));
  number_ = setup_.table->add(this);
  if (!setup_.tracer) return;
  WEFT_CHECK_CUDA(cudaEventCreate(&base_));
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
  cudaGetLastError();
  DeviceState::forget_current();
}

std::uint64_t Lane::expand(std::uint32_t ticket) const {
  // The op is in flight, so its ticket is one of the last 2^32.
  const std::uint64_t issued = issued_.load(std::memory_order_acquire);
  return issued - (static_cast<std::uint32_t>(issued) - ticket);
}

Failure* Lane::begin(Op& op, bool is_sampled) {
  Failure* cause = nullptr;
  const DeviceState* loser = setup_.device->is_lost() ? setup_.device : nullptr;
  for (std::size_t i = 0; i < op.wait_count; ++i) {
    Op& producer = *untagged(op.waits()[i]);
    if (!producer.is_settled()) {
      wait_for(producer);
      // What it should have made is not there, though it has not failed yet.
      if (!loser && !is_order_only(op.waits()[i])) loser = lost_device_of(producer);
    }
    if (!cause && !is_order_only(op.waits()[i]))
      cause = producer.failure.load(std::memory_order_acquire);
  }
  timing_ = {setup_.tracer && setup_.tracer->is_recording(), is_sampled && !cause && !loser};
  if ((timing_.is_traced || timing_.is_sampled) && !setup_.device->is_lost()) {
    started_ = timing_event();
    if (started_) cudaEventRecord(started_, stream_);
  }
  if (loser && !cause) return loser->loss(op.code->name);
  return cause ? Failure::dependent(cause, op.code->name) : nullptr;
}

const DeviceState* Lane::lost_device_of(const Op& producer) const {
  if (producer.lane & LaneTable::kOnMembers) return nullptr;  // fails by itself
  const DeviceState& device = setup_.table->at(producer.lane).device();
  return device.is_lost() ? &device : nullptr;
}

void Lane::wait_for(const Op& producer) {
  if (!(producer.lane & LaneTable::kOnMembers)) {
    wait_for(setup_.table->at(producer.lane), producer.ticket);
    return;
  }
  // Its part on this lane's GPU, if it has one there: what it leaves elsewhere is waited for there.
  const std::vector<Lane*>& members = setup_.table->member_lanes();
  auto is_on = [&](std::size_t gpu) {
    return gpu < LaneTable::kMostMembers && (producer.lane >> gpu & 1) != 0;
  };
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
    if (!mark(issued_.load(std::memory_order_acquire))) return ticket;
    found = std::prev(marks_.end());
  }
  // Under the lock: afterwards the event may be recorded again for a later ticket.
  if (cudaStreamWaitEvent(waiter.stream_, found->event, 0) != cudaSuccess) {
    cudaGetLastError();
    // One of the two is gone: the waiter only if it says so itself.
    if (!waiter.setup_.device->is_gone(waiter.stream_)) setup_.device->is_gone(stream_);
  }
  return found->ticket;
}

bool Lane::mark(std::uint64_t ticket) {
  cudaEvent_t event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
  } else if (!make_event(&event)) {
    return false;
  }
  if (cudaEventRecord(event, stream_) != cudaSuccess) {
    cudaGetLastError();
    spare_.push_back(event);
    setup_.device->is_gone(stream_);
    return false;
  }
  marks_.push_back({ticket, event});
  return true;
}

// In any thread, so not with its current device.
bool Lane::make_event(cudaEvent_t* event) {
  int before = 0;
  cudaGetDevice(&before);
  cudaError_t status = cudaSetDevice(setup_.device->ordinal());
  if (status == cudaSuccess) status = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
  cudaSetDevice(before);
  cudaGetLastError();
  DeviceState::forget_current();
  if (status != cudaSuccess) setup_.device->lose(std::string("no event: ") + reason_of(status));
  return status == cudaSuccess;
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
  mark_if_wanted(op, ticket, expected_ns);
}

void Lane::enqueued_part(Op& op, std::uint64_t ticket, double expected_ns) {
  enqueue(op, ticket, true);
  mark_if_wanted(op, ticket, expected_ns);
}

void Lane::mark_if_wanted(Op& op, std::uint64_t ticket, double expected_ns) {
  since_mark_ns_ += expected_ns;
  ++since_mark_;
  const bool is_urgent = host_waits(op);
  if (is_urgent) urgent_ = ticket;
  if (since_mark_ns_ < kMarkAfterNs && since_mark_ < kMarkAfterOps && !is_urgent &&
      !device_waits(op))
    return;
  if (setup_.device->is_lost()) return;
  std::lock_guard lock(lock_);
  if (marks_.empty() || marks_.back().ticket < ticket) mark(ticket);
  since_mark_ns_ = 0;
  since_mark_ = 0;
}

void Lane::enqueue(Op& op, std::uint64_t ticket, bool is_part) {
  cudaEvent_t ended = nullptr;
  if (started_) {
    ended = timing_event();
    if (ended) cudaEventRecord(ended, stream_);
  }
  in_flight_.push_back({&op, ticket, std::exchange(started_, nullptr), ended, is_part, timing_});
  issued_.store(ticket, std::memory_order_release);
}

// A follower of the same owner will mostly go on this lane, where it needs no mark.
bool Lane::device_waits(Op& op) const {
  return has_follower(op, Stage::Issued, [&](const Op& f) { return f.owner != op.owner; });
}

bool Lane::host_waits(Op& op) {
  return has_follower(op, Stage::Done, [](const Op& f) { return !f.code->is_lazy; });
}

bool Lane::progress(ReadySink& sink, bool quiet) {
  if (in_flight_.empty()) return false;
  if (setup_.device->is_lost())
    done_ = issued_.load(std::memory_order_relaxed);
  else if (done_ < in_flight_.back().ticket && (quiet || urgent_ > done_ || is_due()))
    look_at_marks(quiet);
  return settle_done(sink);
}

bool Lane::is_due() const {
  static const auto kInterval = static_cast<std::uint64_t>(kLookAfterNs / ns_per_tick());
  return ticks() - looked_at_ > kInterval;
}

void Lane::look_at_marks(bool quiet) {
  looked_at_ = ticks();
  std::lock_guard lock(lock_);
  const std::uint64_t issued = issued_.load(std::memory_order_relaxed);
  if (quiet && (marks_.empty() || marks_.back().ticket < issued)) {
    mark(issued);
    since_mark_ns_ = 0;
    since_mark_ = 0;
  }
  // The newest first: if it is done all are, and asking for one that is done costs most. Else by
  // halves, from the oldest, which is likely.
  std::size_t known = 0, unknown = marks_.size();  // so many are done, so many may be
  for (std::size_t at = marks_.size(); at > known; at = known + (unknown - known + 1) / 2) {
    const cudaError_t status = cudaEventQuery(marks_[at - 1].event);
    if (status == cudaSuccess) {
      known = at;
      if (known == unknown) break;
      continue;
    }
    cudaGetLastError();  // it would count as an error of the next launch
    if (status != cudaErrorNotReady) {
      setup_.device->lose(reason_of(status));
      done_ = issued;
      return;
    }
    unknown = at - 1;
    if (at == 1 || known > 0) break;  // what is between is found at the next look
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
  if (entry.started) take_times(entry, failed);
  if (entry.is_part) {
    setup_.part_done(*entry.op, failure, sink);
    return;
  }
  if (setup_.before_settle) setup_.before_settle(*entry.op, failed);
  settle(entry.op, failure, sink);
}

void Lane::take_times(InFlight& entry, bool failed) {
  float ms = 0;
  if (entry.ended && entry.timing.is_sampled && !failed && !setup_.device->is_lost()) {
    if (cudaEventElapsedTime(&ms, entry.started, entry.ended) == cudaSuccess)
      note_run(*entry.op, 1e-3 * double{ms});
    else
      cudaGetLastError();
  }
  if (entry.ended && entry.timing.is_traced) record_span(entry, failed);
  spare_timing_.push_back(entry.started);
  if (entry.ended) spare_timing_.push_back(entry.ended);
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
}

cudaEvent_t Lane::timing_event() {
  cudaEvent_t event = nullptr;
  if (spare_timing_.empty()) {
    if (cudaEventCreate(&event) != cudaSuccess) {
      cudaGetLastError();
      return nullptr;
    }
  } else {
    event = spare_timing_.back();
    spare_timing_.pop_back();
  }
  return event;
}

}  // namespace weft::cuda
