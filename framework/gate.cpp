#include "framework/gate.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include "framework/admit.hpp"
#include "framework/call_builder.hpp"
#include "framework/kernel_code.hpp"
#include "framework/placer.hpp"
#include "framework/tensor.hpp"
#include "framework/trial_op.hpp"
#include "framework/virtual_waits.hpp"

namespace weft {
namespace {

// How far past a stuck submission others may overtake it.
constexpr std::size_t kOvertaking = 64;
// A plan is made anew after so many ops have been given to devices by it, or have come since.
constexpr std::size_t kReplanAfter = 8;
constexpr std::uint32_t kUnplanned = std::numeric_limits<std::uint32_t>::max();

// Codes of inline ops live as long as the process.
KernelCode* make_stand_in_code(const char* name) {
  auto* made = new KernelCode;
  made->name = name;
  made->is_stand_in = true;
  return made;
}

const KernelCode& stand_in_code() {
  static const KernelCode& code = *make_stand_in_code("queued for memory");
  return code;
}

// Of an op that was placed late, whose device may be given another when it has settled.
struct PlacedLate {
  Placer* placer;
  const Place* place;  // null until it has one
};

void placed_op_has_settled(Op& stand_in) {
  auto& placed = *static_cast<PlacedLate*>(stand_in.scalars());
  if (placed.place) placed.placer->has_settled(*std::exchange(placed.place, nullptr));
}

const KernelCode& late_stand_in_code() {
  static const KernelCode& code = *[] {
    KernelCode* made = make_stand_in_code("queued for a device");
    made->inline_run = placed_op_has_settled;
    return made;
  }();
  return code;
}

}  // namespace

// One submission with all it needs: its caller has gone on.
struct Gate::Queued {
  std::uint64_t position = 0;
  Op* stand_in = nullptr;  // counted
  Place* place = nullptr;  // null: of a call whose policy binds late, which has not chosen
  PlacementPolicy* policy = nullptr;
  // Of a call; null: a transfer, from arguments[0] to arguments[1].
  std::shared_ptr<const KernelCode> code;
  std::vector<Argument> arguments;
  std::vector<TensorHandle> handles;
  std::vector<std::uint32_t> memories;
  std::vector<Op*> after;  // counted
  std::vector<std::max_align_t> scalars;
  std::size_t scalar_bytes = 0;
  Mailbox* owner = nullptr;
  std::optional<Domain> domain;
  Priority priority = Priority::Normal;
  std::uint32_t memory = 0;        // of a transfer
  std::unique_ptr<TrialOp> trial;  // of one that waits for a device
  // By the newest plan; kUnplanned: not in it.
  std::uint32_t planned_device = kUnplanned;
  std::size_t planned_turn = 0;
  bool was_left_out = false;  // though nothing that is planned is older
  bool is_stuck = false;      // it has a device and waits for memory

  Queued() = default;
  ~Queued() {
    for (Op* op : after)
      if (op) release(op);
    if (stand_in) release(stand_in);
  }
  Queued(const Queued&) = delete;
  Queued& operator=(const Queued&) = delete;

  [[nodiscard]] bool is_transfer() const { return !code; }
  [[nodiscard]] bool is_planned_by(const PlacementPolicy& by) const {
    return !place && policy == &by;
  }
  [[nodiscard]] bool wants(std::uint32_t which) const {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (memory_of(i) == which) return true;
    return false;
  }
  [[nodiscard]] std::uint32_t memory_of(std::size_t i) const {
    if (is_transfer()) return i == 0 ? NextUses::kElsewhere : memory;
    if (!place) return NextUses::kElsewhere;
    return memories.empty() ? place->memory : memories[i];
  }
  void add(const Argument& argument) {
    argument.tensor->handles.fetch_add(1, std::memory_order_relaxed);
    handles.emplace_back(argument.tensor);
    arguments.push_back(argument);
  }
  // What costs are asked of.
  Op& trial_op() {
    if (!trial) trial = std::make_unique<TrialOp>(*code, arguments, scalars.data(), scalar_bytes);
    return trial->op();
  }
  // The call as it was given.
  [[nodiscard]] Call call() {
    Call made;
    made.place = place;
    made.code = &code;
    made.arguments = arguments;
    made.memories = memories;
    made.after = after;
    made.priority = priority;
    made.scalar_bytes = scalar_bytes;
    made.owner = owner;
    made.domain = domain;
    made.context = this;
    if (scalar_bytes > 0)
      made.write_scalars = [](void* where, void* context) {
        auto& from = *static_cast<Queued*>(context);
        if (from.code->move_scalars)
          from.code->move_scalars(from.scalars.data(), where);
        else
          std::memcpy(where, from.scalars.data(), from.scalar_bytes);
      };
    return made;
  }
};

// Those that do not go through now, which others must not overtake.
class Gate::Held {
 public:
  void add(const Queued& entry) {
    for (const Argument& argument : entry.arguments) {
      used_.insert(argument.tensor);
      if (argument.access != Access::In) written_.insert(argument.tensor);
    }
    stand_ins_.insert(entry.stand_in);
  }
  [[nodiscard]] bool is_before(const Queued& entry) const {
    for (const Argument& argument : entry.arguments)
      if ((argument.access == Access::In ? written_ : used_).contains(argument.tensor)) return true;
    for (const Op* op : entry.after)
      if (stand_ins_.contains(op)) return true;
    return false;
  }

 private:
  std::unordered_set<const TensorState*> used_, written_;
  std::unordered_set<const Op*> stand_ins_;
};

Gate::Gate(Fabric& fabric, Admission& admission, bool polls, std::function<void()> look)
    : fabric_(fabric),
      admission_(admission),
      polls_(polls),
      look_(std::move(look)),
      eviction_(fabric, uses_, mutex_, *this) {}

Gate::~Gate() {
  for (auto& pool : fabric_.memories) pool->set_watch(nullptr);
}

Op* Gate::queue(const Call& call) {
  wait_for_room(admission_);  // may throw: before the scalars are moved
  auto entry = std::make_unique<Queued>();
  entry->place = call.place;
  entry->policy = call.policy;
  entry->code = *call.code;
  for (const Argument& argument : call.arguments) entry->add(argument);
  entry->memories.assign(call.memories.begin(), call.memories.end());
  for (Op* op : call.after) {
    if (op) acquire(op);
    entry->after.push_back(op);
  }
  entry->priority = call.priority;
  entry->scalar_bytes = call.scalar_bytes;
  entry->owner = call.owner;
  entry->domain = call.domain;
  if (call.scalar_bytes > 0) {
    entry->scalars.resize((call.scalar_bytes + sizeof(std::max_align_t) - 1) /
                          sizeof(std::max_align_t));
    call.write_scalars(entry->scalars.data(), call.context);
  }
  return queue(std::move(entry));
}

Op* Gate::queue_transfer(TensorState* source, TensorState* target, std::uint32_t memory,
                         Place& place) {
  wait_for_room(admission_);
  auto entry = std::make_unique<Queued>();
  entry->place = &place;
  entry->memory = memory;
  entry->add({source, Access::In, nullptr});
  entry->add({target, Access::Out, nullptr});
  return queue(std::move(entry));
}

Op* Gate::queue(std::unique_ptr<Queued> entry) {
  // References are the runner's, the queue's, the caller's.
  Op* stand_in = entry->place ? make_op(&stand_in_code(), 0, 0, 0, 3)
                              : make_op(&late_stand_in_code(), 0, 0, sizeof(PlacedLate), 3);
  if (!entry->place) new (stand_in->scalars()) PlacedLate{};
  publish(stand_in);
  entry->stand_in = stand_in;
  {
    std::lock_guard lock(mutex_);
    entry->position = next_position_++;
    for (std::size_t i = 0; i < entry->arguments.size(); ++i) {
      const Argument& argument = entry->arguments[i];
      uses_.add(argument.tensor, {.position = entry->position,
                                  .memory = entry->memory_of(i),
                                  .reads = argument.access != Access::Out,
                                  .writes = argument.access != Access::In});
    }
    queue_.push_back(std::move(entry));
    admission_.take_in();
    queued_.fetch_add(1, std::memory_order_seq_cst);
  }
  look_();
  return stand_in;
}

Op* Gate::queued_writer(const TensorState* tensor) {
  if (!is_shut()) return nullptr;
  std::lock_guard lock(mutex_);
  if (!uses_.is_used(tensor)) return nullptr;
  for (auto entry = queue_.rbegin(); entry != queue_.rend(); ++entry)
    for (const Argument& argument : (*entry)->arguments)
      if (argument.tensor == tensor && argument.access != Access::In) {
        acquire((*entry)->stand_in);
        return (*entry)->stand_in;
      }
  return nullptr;
}

bool Gate::is_queued(const TensorState* tensor) {
  std::lock_guard lock(mutex_);
  return uses_.is_used(tensor);
}

bool Gate::get_room(MemoryPool& pool, std::size_t bytes) {
  if (bytes > pool.budget() || thread_must_not_wait()) return false;
  const auto request = std::make_shared<Request>();
  request->pool = &pool;
  request->bytes = bytes;
  {
    std::lock_guard lock(mutex_);
    requests_.push_back(request);
    admission_.take_in();
  }
  look_();
  virtual_waits::wait_in_any_time(
      [&] { return request->answer.load(std::memory_order_acquire) != 0; });
  return request->answer.load(std::memory_order_acquire) > 0;
}

void Gate::wait_until_open() {
  virtual_waits::wait_in_any_time([this] { return !is_shut(); });
}

void Gate::look() {
  must_poll_ = false;
  const bool has_requests = look_at_requests();
  const bool has_stuck = look_at_queue();
  if (has_requests || has_stuck) return;
  for (auto& pool : fabric_.memories) pool->set_watch(nullptr);
}

bool Gate::look_at_requests() {
  std::vector<std::shared_ptr<Request>> requests;
  {
    std::lock_guard lock(mutex_);
    requests = requests_;
  }
  for (const auto& request : requests) {
    request->pool->set_watch(this);  // before the look: what comes is told
    int answer = 0;
    if (request->pool->room() < request->bytes &&
        !make_room(*request->pool, request->bytes, nullptr))
      answer = -1;
    else if (request->pool->room() >= request->bytes)
      answer = 1;
    if (answer == 0) continue;
    {
      std::lock_guard lock(mutex_);
      std::erase(requests_, request);
    }
    request->answer.store(answer, std::memory_order_release);
    admission_.let_out();
  }
  std::lock_guard lock(mutex_);
  return !requests_.empty();
}

bool Gate::look_at_queue() {
  std::vector<Queued*> entries;  // stay where they are: only this thread takes them out
  {
    std::lock_guard lock(mutex_);
    for (const auto& entry : queue_) entries.push_back(entry.get());
  }
  const std::size_t planned = give_by_plans(entries);
  Held held;
  Memories full;  // memories that those want room in
  bool is_memory_short = false;
  std::size_t stuck = 0;
  for (std::size_t at = 0; at < entries.size(); ++at) {
    Queued* const entry = entries[at];
    bool must_wait = held.is_before(*entry);
    for (std::size_t i = 0; i < entry->arguments.size() && !must_wait; ++i)
      must_wait = full.contains(entry->memory_of(i));
    if (!must_wait && let_through(*entry, full) == Outcome::Through) {
      remove(*entry);
      continue;
    }
    if (++stuck > kOvertaking && at >= planned) break;
    held.add(*entry);
    // By a plan: an older one may want the device.
    if (must_wait && entry->place && entry->policy) give_place_back(*entry);
    if (!entry->place) continue;  // it waits for a device
    // As long as all wait for devices and for each other, no memory is short.
    is_memory_short = is_memory_short || !must_wait;
    entry->is_stuck = is_memory_short;
    if (!is_memory_short) continue;
    for (std::size_t i = 0; i < entry->arguments.size(); ++i)
      if (entry->memory_of(i) != NextUses::kElsewhere) full.insert(entry->memory_of(i));
  }
  return stuck > 0;
}

Op* Gate::try_submit(Queued& entry, Shortage& shortage) {
  if (entry.is_transfer())
    return try_transfer(fabric_, entry.arguments[0].tensor, entry.arguments[1].tensor, entry.memory,
                        *entry.place, Budget::Gate, shortage);
  return weft::try_submit(fabric_, entry.call(), Budget::Gate, shortage);
}

// Gives devices that are about to run dry what plans say. Returns how many of the first entries
// must be looked at: the last one that has been given is among them.
std::size_t Gate::give_by_plans(const std::vector<Queued*>& entries) {
  std::vector<PlacementPolicy*> policies;
  std::size_t looked_at = 0;
  for (std::size_t at = 0; at < entries.size(); ++at) {
    PlacementPolicy* const policy = entries[at]->policy;
    if (!policy || policy->plans_ahead() == 0) continue;
    if (entries[at]->place)
      looked_at = at + 1;
    else if (std::find(policies.begin(), policies.end(), policy) == policies.end())
      policies.push_back(policy);
  }
  for (PlacementPolicy* policy : policies)
    looked_at = std::max(looked_at, give_by_plan(entries, *policy));
  return looked_at;
}

std::size_t Gate::give_by_plan(const std::vector<Queued*>& entries, PlacementPolicy& policy) {
  Placer& placer = *fabric_.placer.load(std::memory_order_acquire);
  std::vector<std::size_t> window;
  std::size_t unplanned = 0;
  for (std::size_t at = 0; at < entries.size() && window.size() < policy.plans_ahead(); ++at) {
    if (!entries[at]->is_planned_by(policy)) continue;
    window.push_back(at);
    unplanned += entries[at]->planned_device == kUnplanned;
  }
  bool has_room = false;
  for (const auto& place : fabric_.places) has_room = has_room || placer.has_room(place->index);
  if (!has_room) return 0;
  std::size_t given = 0;
  if (unplanned < kReplanAfter && given_by_plan_ < kReplanAfter)
    given = give_planned(entries, window);
  if (given == 0) {
    plan(entries, window, policy);
    given = give_planned(entries, window);
  }
  given_by_plan_ += given;
  std::size_t looked_at = 0;
  for (const std::size_t at : window)
    if (entries[at]->place) looked_at = at + 1;
  return looked_at;
}

void Gate::plan(const std::vector<Queued*>& entries, const std::vector<std::size_t>& window,
                PlacementPolicy& policy) {
  std::vector<Placer::Waiting> waiting;
  for (const std::size_t at : window) {
    Queued& entry = *entries[at];
    Placer::Waiting made{entry.call(), &entry.trial_op(), {}};
    for (std::uint32_t i = 0; i < waiting.size(); ++i)
      for (const Op* op : entry.after)
        if (op == entries[window[i]]->stand_in) made.after.push_back(i);
    waiting.push_back(std::move(made));
    entry.planned_device = kUnplanned;
  }
  Placer& placer = *fabric_.placer.load(std::memory_order_acquire);
  std::size_t turn = 0;
  for (const PlannedOp& planned : placer.plan(waiting, policy)) {
    Queued& entry = *entries[window[planned.op]];
    entry.planned_device = planned.device;
    entry.planned_turn = turn++;
  }
  if (!window.empty() && entries[window[0]]->planned_device == kUnplanned)
    entries[window[0]]->was_left_out = true;
  given_by_plan_ = 0;
}

// Whether it would go through, as far as what is older says, with its arguments in `memory`.
bool Gate::may_go(const std::vector<Queued*>& entries, std::size_t at, std::uint32_t memory) {
  Held held;
  for (std::size_t before = 0; before < at; ++before) {
    const Queued& other = *entries[before];
    if (other.is_stuck && other.wants(memory)) return false;
    if (!other.place || other.is_stuck || held.is_before(other)) held.add(other);
  }
  return !held.is_before(*entries[at]);
}

// Gives what is planned to devices that have room. One that needs another of the window comes
// behind it. Returns how many.
std::size_t Gate::give_planned(const std::vector<Queued*>& entries,
                               const std::vector<std::size_t>& window) {
  Placer& placer = *fabric_.placer.load(std::memory_order_acquire);
  std::vector<std::size_t> turns = window;
  std::erase_if(turns, [&](std::size_t at) { return entries[at]->planned_device == kUnplanned; });
  std::sort(turns.begin(), turns.end(), [&](std::size_t a, std::size_t b) {
    return entries[a]->planned_turn < entries[b]->planned_turn;
  });
  std::size_t given = 0;
  for (const std::size_t at : turns) {
    Queued& entry = *entries[at];
    if (fabric_.places[entry.planned_device]->is_lost.load(std::memory_order_relaxed)) {
      entry.planned_device = kUnplanned;
      continue;
    }
    if (!placer.has_room(entry.planned_device)) continue;
    if (!may_go(entries, at, fabric_.places[entry.planned_device]->memory)) continue;
    entry.place = placer.give_planned(entry.call(), entry.trial_op(), entry.planned_device);
    *static_cast<PlacedLate*>(entry.stand_in->scalars()) = {&placer, entry.place};
    ++given;
  }
  return given;
}

// False: it must wait for a device.
bool Gate::place(Queued& entry) {
  // The oldest that a plan leaves out is placed without.
  if (entry.policy->plans_ahead() > 0 && !entry.was_left_out) return false;
  Placer* const placer = fabric_.placer.load(std::memory_order_acquire);
  entry.place = placer->try_place(entry.call(), entry.trial_op(), *entry.policy);
  if (!entry.place) return false;
  *static_cast<PlacedLate*>(entry.stand_in->scalars()) = {placer, entry.place};
  return true;
}

// An older one may want the device: behind it waits who wants the memory that is full.
void Gate::give_place_back(Queued& entry) {
  auto& placed = *static_cast<PlacedLate*>(entry.stand_in->scalars());
  placed.placer->take_back(*std::exchange(placed.place, nullptr));
  entry.place = nullptr;
  entry.is_stuck = false;
}

Gate::Outcome Gate::let_through(Queued& entry, const Memories& full) {
  Shortage shortage;
  Failure* failure = nullptr;
  const std::string name = entry.is_transfer() ? "copy" : entry.code->name;
  try {
    if (!entry.place) {
      if (!place(entry)) return Outcome::Stuck;
      for (std::size_t i = 0; i < entry.arguments.size(); ++i)
        if (full.contains(entry.memory_of(i))) {
          give_place_back(entry);
          return Outcome::Stuck;
        }
    }
    for (;;) {
      // Before the try, and in this order: what is queued meanwhile is not quiet.
      const std::int64_t waiting = admission_.in_flight();
      const bool is_quiet = fabric_.in_flight() == waiting;
      if (Op* op = try_submit(entry, shortage)) {
        finish(entry, op);
        return Outcome::Through;
      }
      if (!shortage.pool) throw UsageError("a tensor has no value yet: write it first");
      MemoryPool& pool = *shortage.pool;
      if (pool.set_watch(this)) continue;  // what was given back just before, nobody was told
      if (make_room(pool, shortage.missing, &entry)) {
        if (pool.room() >= shortage.missing) continue;  // what was idle went at once
        return Outcome::Stuck;
      }
      // What is under way may drop the last handle of something.
      if (!is_quiet) {
        must_poll_ = polls_;
        return Outcome::Stuck;
      }
      std::size_t wanted = shortage.missing;
      if (!entry.is_transfer()) {  // of one that can never fit, all that it needs there
        const CallBytes all = bytes_in(fabric_, pool, entry.call(), entry.place->memory);
        if (all.taken > pool.budget()) wanted = all.asked;
      }
      failure = Failure::make(FailureKind::OutOfMemory, name, entry.place->name,
                              out_of_memory(pool, wanted));
      break;
    }
  } catch (const std::exception& error) {
    if (!entry.place) entry.place = fabric_.places.front().get();
    failure = Failure::make(FailureKind::DeviceError, name, entry.place->name, error.what());
  } catch (...) {
    if (!entry.place) entry.place = fabric_.places.front().get();
    failure = Failure::make(FailureKind::DeviceError, name, entry.place->name, "unknown exception");
  }
  // It is in nobody's hands: the device is not waited for.
  if (entry.policy) placed_op_has_settled(*entry.stand_in);
  finish(entry, entry.is_transfer()
                    ? fail_transfer(fabric_, entry.arguments[0].tensor, entry.arguments[1].tensor,
                                    *entry.place, failure)
                    : fail_call(fabric_, entry.call(), failure));
  return Outcome::Through;
}

// False: nothing will ever be given back.
bool Gate::make_room(MemoryPool& pool, std::size_t bytes, const Queued* for_whom) {
  if (for_whom) return eviction_.make_room(pool, bytes, {for_whom->arguments, for_whom->position});
  std::uint64_t position = 0;
  {
    std::lock_guard lock(mutex_);
    position = queue_.empty() ? next_position_ : queue_.front()->position;
  }
  return eviction_.make_room(pool, bytes, {{}, position});
}

// Takes over `op`.
void Gate::finish(Queued& entry, Op* op) {
  for (const Argument& argument : entry.arguments) {
    std::lock_guard lock(argument.tensor->lock);
    argument.tensor->last_use = entry.position;
  }
  DependencySet needs;
  needs.add(op, false);
  connect(entry.stand_in, needs);
  // A device is not kept waiting for what only the program can settle.
  if (entry.policy && op->waits_for_program) placed_op_has_settled(*entry.stand_in);
  satisfy(entry.stand_in, send_to_owner());
  release(op);
}

void Gate::remove(Queued& entry) {
  std::unique_ptr<Queued> gone;
  {
    std::lock_guard lock(mutex_);
    for (const Argument& argument : entry.arguments) uses_.drop(argument.tensor, entry.position);
    const auto found = std::find_if(queue_.begin(), queue_.end(),
                                    [&](const auto& each) { return each.get() == &entry; });
    gone = std::move(*found);
    queue_.erase(found);
    queued_.fetch_sub(1, std::memory_order_seq_cst);
  }
  gone.reset();  // may drop the last handle of a tensor
  admission_.let_out();
}

}  // namespace weft
