#include "actors/socket_team.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "framework/kernel_code.hpp"
#include "framework/placer.hpp"
#include "framework/submit.hpp"
#include "framework/tensor_state.hpp"
#include "framework/tick_clock.hpp"
#include "framework/trace.hpp"

namespace weft {
namespace {

// Ops longer than this must not have others wait behind them while a core is free.
constexpr double kLongNs = 20'000;
// Shorter ops are not worth a write to their kernel's shared statistics.
constexpr double kWorthNoting = 2'000;
constexpr std::uint32_t kTimeEvery = 8;
constexpr std::size_t kLookEvery = 4;  // own ops between two looks for what others made ready
constexpr std::uint32_t kWorthSharing = 8'000;  // ns: an op that pays for its way to another core
constexpr std::uint32_t kWorthFetching = 250;   // ns: an op that hides a cache miss
constexpr std::size_t kMany = 8;                // so many short ones do, too
constexpr std::uint32_t kWorthMoving = 800;     // ns: a standing op that does so for good
constexpr std::size_t kSome = 2;
constexpr std::size_t kMost = 128;  // taken apart; more is offered whole
constexpr std::size_t kLookForSubmissions = 16;
constexpr std::int64_t kBurst = 3;      // submissions at one look that call for patience
constexpr double kFirstGatherNs = 400;  // of patience; doubled with each look that finds a burst …
constexpr double kMostGatherNs = 100'000;
constexpr double kPeekNs = 8'000;  // … at which a look is cast in between, to see its end

std::uint64_t ticks_of(double ns) {
  return static_cast<std::uint64_t>(ns / ns_per_tick());
}

bool may_be_long(const KernelCode& code) {
  const std::uint32_t typical = code.typical_ns.load(std::memory_order_relaxed);
  return typical == 0 || typical > kLongNs;
}

void note_duration(const KernelCode& code, double ns) {
  const std::uint32_t typical = code.typical_ns.load(std::memory_order_relaxed);
  if (typical != 0 && ns < kWorthNoting && typical <= kWorthSharing) return;
  const double smoothed = typical == 0 ? ns : 0.75 * typical + 0.25 * ns;
  code.typical_ns.store(static_cast<std::uint32_t>(std::clamp(smoothed, 1.0, 4e9)),
                        std::memory_order_relaxed);
}

Failure* failure_of_current_exception(const Op& op, const std::string& device) {
  try {
    throw;
  } catch (const std::exception& error) {
    return Failure::make(FailureKind::KernelThrew, op.code->name, device, error.what());
  } catch (...) {
    return Failure::make(FailureKind::KernelThrew, op.code->name, device, "unknown exception");
  }
}

}  // namespace

SocketLane::SocketLane(SocketTeam& team, std::uint32_t number)
    : team_(team),
      number_(number),
      mailbox_(team.place_.admission.get()),
      first_gather_ticks_(ticks_of(kFirstGatherNs)),
      most_gather_ticks_(ticks_of(kMostGatherNs)),
      peek_ticks_(ticks_of(kPeekNs)) {}

std::size_t SocketLane::team_size() const {
  return team_.lanes_.size();
}

void SocketLane::ready(Op* op) {
  if (op->owner == &mailbox_)
    local_.push_back(op);
  else
    op->owner->push(op);
}

bool SocketLane::prepare_to_park() {
  set_gathering(false);
  return mailbox_.prepare_to_park();
}

void SocketLane::idle_changes(bool idle) {
  if (idle)
    team_.idle_.fetch_add(1, std::memory_order_relaxed);
  else
    team_.idle_.fetch_sub(1, std::memory_order_relaxed);
}

bool SocketLane::run_some() {
  local_.append(mailbox_.take_ready());
  if (local_.empty()) look_for_submissions();
  if (local_.empty()) return help_neighbours() || take_from_neighbours();
  std::size_t since_look = 0;
  while (Op* op = local_.pop_front()) {
    if (const Op* next = local_.front()) next->prefetch();
    execute(op);
    if (++since_look % kLookEvery == 0) local_.append(mailbox_.take_ready());
    if (since_look % kLookForSubmissions == 0) look_for_submissions();
  }
  return true;
}

// While a program submits faster than a lane runs dry, each look takes the list's cache line from
// the submitter, and an op run right behind its submission costs both their lines: the lane those
// of its followers, the submitter those of the ops that it builds upon. So a burst is let gather,
// the longer the longer it goes on; a lone op (a hand-off that somebody waits for) is taken at
// once, and the end of a burst is seen soon. What is submitted behind ops that wait here is not
// ready, so it is the device's count that tells.
void SocketLane::look_for_submissions() {
  if (gather_ticks_ == 0 && !mailbox_.has_submitted()) return;
  const std::uint64_t now = ticks();
  if (now - last_look_ < std::min(gather_ticks_, peek_ticks_)) return;
  last_look_ = now;
  const std::int64_t submitted = team_.place_.admission->submitted();
  const bool goes_on = submitted - submitted_seen_ >= kBurst;
  submitted_seen_ = submitted;
  if (now - last_take_ < gather_ticks_ && (goes_on || !local_.empty())) {
    set_gathering(true);
    return;
  }
  set_gathering(false);
  last_take_ = now;
  local_.append(mailbox_.take_submitted());
  const std::int64_t came = submitted - std::exchange(submitted_taken_, submitted);
  if (came >= kBurst)
    gather_ticks_ = std::min(2 * gather_ticks_ + first_gather_ticks_, most_gather_ticks_);
  else if (came < 2)
    gather_ticks_ /= 2;
}

void SocketLane::set_gathering(bool gathering) {
  if (gathering_.load(std::memory_order_relaxed) != gathering)
    gathering_.store(gathering, std::memory_order_relaxed);
}

// Of a kernel that is known to be short, one op in so many.
bool SocketLane::is_worth_timing(const KernelCode& code) {
  const std::uint32_t typical = code.typical_ns.load(std::memory_order_relaxed);
  return typical == 0 || typical >= kWorthNoting || ++untimed_ % kTimeEvery == 0;
}

void SocketLane::execute(Op* op) {
  const KernelCode& code = *op->code;
  // Not during a short op: its followers may be just being submitted by another core.
  if (code.typical_ns.load(std::memory_order_relaxed) > kWorthFetching) op->prefetch_followers();
  if (team_.lanes_.size() > 1) offer_rest(*op);
  Failure* failure = allocate_outputs(*op, team_.place_);
  running_ = op;
  Tracer* const tracer = team_.fabric_.tracer;
  const bool is_learnt = team_.fabric_.placer.load(std::memory_order_relaxed) != nullptr;
  const bool is_timed = tracer || is_worth_timing(code);
  const std::uint64_t start = is_timed ? ticks() : 0;
  if (!failure) {
    try {
      code.cpu(*this, *op);
    } catch (...) {
      failure = failure_of_current_exception(*op, team_.place_.name);
    }
  }
  const std::uint64_t end = is_timed ? ticks() : 0;
  if (is_timed) note_duration(code, static_cast<double>(end - start) * ns_per_tick());
  mailbox_.set_occupied(false);
  take_back();
  if (op->owner != &mailbox_) {
    if (op->is_standing())
      std::atomic_ref(op->owner).store(&mailbox_, std::memory_order_relaxed);  // for diagnosis
    else if (code.typical_ns.load(std::memory_order_relaxed) > kWorthSharing)
      adopt_home(*op);
  }
  if (tracer) tracer->ran_ticks(track_, *op, start, end, failure != nullptr);
  if (is_timed && is_learnt && !failure)
    note_run(*op, 1e-9 * static_cast<double>(end - start) * ns_per_tick());
  settle(op, failure, *this);
}

// Before a long op, all that waits here is put where an idle neighbour can take it, in constant
// time. Before a short one, if neighbours are idle and there is enough to be worth their coming,
// half of it goes back to the mailbox.
void SocketLane::offer_rest(const Op& op) {
  const bool long_op = may_be_long(*op.code);
  if (long_op) mailbox_.set_occupied(true);
  if (local_.empty()) return;
  const bool someone_idle = team_.idle_.load(std::memory_order_relaxed) > 0;
  const std::uint32_t typical = op.code->typical_ns.load(std::memory_order_relaxed);
  const bool worth_coming = local_.size() >= kMany || typical > kWorthSharing ||
                            (op.is_standing() && local_.size() >= kSome && typical > kWorthMoving);
  if (!long_op && !(someone_idle && worth_coming)) return;
  if (long_op || local_.size() > kMost) {
    offered_ = std::exchange(local_, {});
    offered_first_.store(offered_.chain(), std::memory_order_release);
  } else {  // the newest half: the oldest are what others wait for
    ReadyList kept;
    for (std::size_t i = local_.size() / 2; i > 0; --i) kept.push_back(local_.pop_front());
    while (Op* other = local_.pop_front()) mailbox_.push(other);
    local_ = kept;
  }
  if (!someone_idle) return;
  for (auto& lane : team_.lanes_)
    if (lane.get() != this && lane->mailbox_.is_parked()) {
      lane->mailbox_.nudge();
      break;
    }
}

// What was offered and not taken is ours again, before what the op made ready.
void SocketLane::take_back() {
  if (offered_.empty()) return;
  ReadyList offered = std::exchange(offered_, {});
  if (!offered_first_.exchange(nullptr, std::memory_order_acquire)) return;
  offered.unchain();
  local_ = offered;
}

// An op that another lane had too many of: what writes the same data next prefers this lane.
void SocketLane::adopt_home(Op& op) const {
  for (std::size_t i = 0; i < op.arg_count; ++i)
    if (op.args()[i].access() != Access::In)
      op.args()[i].replica()->tensor->home_lane.store(number_, std::memory_order_relaxed);
}

bool SocketLane::take_from_neighbours() {
  for (auto& lane : team_.lanes_) {
    if (lane.get() == this) continue;
    if (lane->offered_first_.load(std::memory_order_relaxed))
      local_.append(lane->offered_first_.exchange(nullptr, std::memory_order_acquire));
    if (!lane->mailbox_.is_empty() && !lane->gathering_.load(std::memory_order_relaxed) &&
        (lane->mailbox_.is_occupied() || team_.idle_.load(std::memory_order_relaxed) > 0)) {
      local_.append(lane->mailbox_.take_ready());
      local_.append(lane->mailbox_.take_submitted());
    }
    if (local_.empty()) continue;
    // Half of it goes back, to whoever is free first.
    if (local_.size() > 1) {
      const std::size_t half = local_.size() / 2;
      ReadyList mine;
      for (std::size_t i = 0; i < half; ++i) mine.push_back(local_.pop_front());
      while (Op* op = local_.pop_front()) lane->mailbox_.push(op);
      local_ = mine;
    }
    return run_some();
  }
  return false;
}

void SocketLane::work_on(Shared& shared) {
  for (;;) {
    const std::size_t begin = shared.next.fetch_add(shared.step, std::memory_order_relaxed);
    if (begin >= shared.n) return;
    try {
      shared.range.run(shared.range.body, begin, std::min(shared.n, begin + shared.step));
    } catch (...) {
      std::lock_guard lock(shared.lock);
      if (!shared.error) shared.error = std::current_exception();
      shared.next.store(shared.n, std::memory_order_relaxed);
      return;
    }
  }
}

void SocketLane::share(std::size_t n, std::size_t grain, Range range) {
  if (sharing_.exchange(true, std::memory_order_acquire)) {  // nested, or from a helper: alone
    range.run(range.body, 0, n);
    return;
  }
  const std::size_t parts = std::min<std::size_t>(4 * team_.lanes_.size(), (n + grain - 1) / grain);
  {
    std::lock_guard lock(shared_.lock);
    shared_.op = running_;
    shared_.range = range;
    shared_.n = n;
    shared_.step = std::max(grain, (n + parts - 1) / parts);
    shared_.next.store(0, std::memory_order_relaxed);
    shared_.error = nullptr;
    shared_.open = true;
  }
  team_.open_jobs_.fetch_add(1, std::memory_order_release);
  std::size_t wanted = parts - 1;
  for (auto& lane : team_.lanes_) {
    if (wanted == 0) break;
    if (lane.get() == this || !lane->mailbox_.is_parked()) continue;
    lane->mailbox_.nudge();
    --wanted;
  }
  work_on(shared_);
  team_.open_jobs_.fetch_sub(1, std::memory_order_relaxed);
  std::exception_ptr error;
  {
    std::lock_guard lock(shared_.lock);
    shared_.open = false;
  }
  Backoff backoff;
  while (shared_.helpers.load(std::memory_order_acquire) != 0) backoff.pause();
  error = std::exchange(shared_.error, nullptr);
  sharing_.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

bool SocketLane::help_neighbours() {
  if (team_.open_jobs_.load(std::memory_order_acquire) == 0) return false;
  for (auto& lane : team_.lanes_) {
    if (lane.get() == this) continue;
    Shared& shared = lane->shared_;
    {
      std::lock_guard lock(shared.lock);
      if (!shared.open || shared.next.load(std::memory_order_relaxed) >= shared.n) continue;
      shared.helpers.fetch_add(1, std::memory_order_relaxed);
    }
    Tracer* const tracer = team_.fabric_.tracer;
    const std::uint64_t start = ticks();
    work_on(shared);
    if (tracer) tracer->ran_ticks(track_, *shared.op, start, ticks());  // the op waits for helpers
    shared.helpers.fetch_sub(1, std::memory_order_release);
    return true;
  }
  return false;
}

SocketTeam::SocketTeam(Place& place, Fabric& fabric, std::uint32_t cores)
    : place_(place), fabric_(fabric) {
  for (std::uint32_t core = 0; core < cores; ++core) {
    lanes_.push_back(std::make_unique<SocketLane>(*this, core));
    if (fabric.tracer)
      lanes_.back()->track_ =
          fabric.tracer->add_track(place.name, "core " + std::to_string(core), TrackKind::Socket);
    place.lanes.push_back(&lanes_.back()->mailbox());
  }
}

}  // namespace weft
