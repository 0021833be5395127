// Who of those that wait for a device gets one.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "framework/gate_queue.hpp"
#include "framework/placer.hpp"

namespace weft {
namespace {

// A plan is made anew after so many ops have been given to devices by it, or have come since.
constexpr std::size_t kReplanAfter = 8;
// What begins after so many times the shortest op may still go elsewhere: it is not given yet.
constexpr double kFar = 10;

}  // namespace

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
  for (const auto& place : fabric_.places)
    has_room = has_room || placer.has_room(place->index, false);
  if (!has_room) return 0;
  std::size_t given = 0;
  if (unplanned < kReplanAfter && given_by_plan_ < kReplanAfter)
    given = give_planned(entries, window);
  // What a plan did not give is given when something has ended, or much has come.
  const std::int64_t settled = fabric_.settled();
  if (given == 0 && (settled != settled_when_stuck_ || unplanned >= kReplanAfter)) {
    plan(entries, window, policy);
    given = give_planned(entries, window);
    settled_when_stuck_ = given == 0 ? settled : -1;
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
  const auto all = static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(),
                    [&](const Queued* entry) { return entry->is_planned_by(policy); }));
  Placer& placer = *fabric_.placer.load(std::memory_order_acquire);
  std::size_t turn = 0;
  double shortest = std::numeric_limits<double>::infinity();
  for (const Placer::Given& given : placer.plan(waiting, all, policy)) {
    Queued& entry = *entries[window[given.planned.op]];
    entry.planned_device = given.planned.device;
    entry.planned_turn = turn++;
    entry.planned_begin = given.planned.begin;
    shortest = std::min(shortest, given.run);
  }
  far_ahead_ = kFar * shortest;
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
    const bool is_far = entry.planned_begin > far_ahead_;
    if (!placer.has_room(entry.planned_device, is_far)) continue;
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

}  // namespace weft
