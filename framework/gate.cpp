#include "framework/gate.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_set>
#include <utility>

#include "framework/admit.hpp"
#include "framework/call_builder.hpp"
#include "framework/gate_queue.hpp"
#include "framework/placer.hpp"
#include "framework/virtual_waits.hpp"

namespace weft {
namespace {

// How far past a stuck submission others may overtake it.
constexpr std::size_t kOvertaking = 64;

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
  for (;;) {
    const auto before = count_if_quiet();
    if (ask_for_room(pool, bytes)) return true;
    if (before && count_if_quiet() == before) return false;
    if (wait_for_memory(fabric_, pool, bytes)) return true;
  }
}

bool Gate::ask_for_room(MemoryPool& pool, std::size_t bytes) {
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

std::optional<std::int64_t> Gate::count_if_quiet() const {
  const auto sum = [&](const auto& count) {
    std::int64_t all = count(fabric_.in_hand);
    for (const auto& place : fabric_.places) all += count(*place->admission);
    for (const auto& admission : fabric_.link_admissions)
      if (admission.get() != &admission_) all += count(*admission);
    return all;
  };
  // In this order: see `Fabric::in_flight`.
  const std::int64_t settled = sum([](const Admission& each) { return each.settled(); });
  const std::int64_t submitted = sum([](const Admission& each) { return each.submitted(); });
  if (submitted != settled) return std::nullopt;
  return submitted;
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
      const auto quiet = count_if_quiet();  // before the try
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
      if (!quiet) {
        must_poll_ = polls_;
        return Outcome::Stuck;
      }
      // What was submitted since may have settled before it was seen: sums, what eviction began,
      // submissions that got past the gate before it was shut.
      if (count_if_quiet() != quiet) continue;
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

// False: nothing was found that can go, as `Eviction::make_room` says.
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
