#include "framework/wait_graph.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "framework/followers.hpp"
#include "framework/kernel_code.hpp"
#include "framework/op_pool.hpp"
#include "framework/standing_ops.hpp"

namespace weft {
namespace {

struct Unhold {
  void operator()(Op* op) const { release(op); }
};
using Held = std::unique_ptr<Op, Unhold>;

// The mailboxes of a fabric, by name. Ops of other runtimes have owners that may be gone.
using Owners = std::unordered_map<const Mailbox*, std::string>;

Owners owners_of(const Fabric& fabric) {
  Owners owners;
  for (const auto& place : fabric.places)
    for (const Mailbox* lane : place->lanes) owners.emplace(lane, " on " + place->name);
  for (const Path& path : fabric.paths)
    for (const Segment& segment : path.segments) owners.emplace(segment.owner, " on a link");
  if (fabric.collectives) owners.emplace(fabric.collectives, " among devices");
  return owners;
}

std::string name_of(Op& op) {
  std::string name = op.code->name;
  if (name == "promise") name += std::string(" \"") + static_cast<char*>(op.scalars()) + "\"";
  return name + " #" + std::to_string(reinterpret_cast<std::uintptr_t>(&op) / 64 % 100000);
}

}  // namespace

std::string describe_waits(const Fabric& fabric, std::size_t limit) {
  const Owners owners = owners_of(fabric);
  auto place_of = [&](const Op& op) {
    Mailbox* const owner = std::atomic_ref(const_cast<Mailbox*&>(op.owner)).load();
    return owner ? owners.at(owner) : std::string();
  };

  std::lock_guard lock(fabric.standing_mutex);  // longer than `pending`: it keeps runs
  std::vector<Held> pending;
  op_pool::for_each_op_block([&](void* block) {
    auto* op = static_cast<Op*>(block);
    if (!try_acquire(op)) return;
    Held held(op);
    if (!op->is_settled() && (!op->owner || owners.contains(op->owner)))
      pending.push_back(std::move(held));
  });
  for (const StandingRun* run : fabric.standing_runs)
    run->visit_pending([&](Op* op) {
      acquire(op);
      pending.emplace_back(op);
    });
  std::sort(pending.begin(), pending.end());
  std::unordered_map<const Op*, std::vector<Op*>> waits_for;
  for (const Held& op : pending) waits_for[op.get()];
  for (const Held& producer : pending)
    visit_followers(producer.get(), [&](const Op* follower) {
      if (const auto found = waits_for.find(follower); found != waits_for.end())
        found->second.push_back(producer.get());
    });

  std::string text;
  std::size_t lines = 0;
  for (const Held& op : pending) {
    const auto& producers = waits_for.at(op.get());
    const bool is_promise = op->code->name == "promise";
    if (!op->owner && !is_promise && producers.empty()) continue;
    if (++lines > limit) break;
    text += "  " + name_of(*op) + place_of(*op);
    if (!producers.empty()) {
      text += " waits for ";
      for (std::size_t i = 0; i < producers.size(); ++i)
        text += (i ? ", " : "") + name_of(*producers[i]) + place_of(*producers[i]);
    } else if (is_promise) {
      text += " is not settled by the program";
    } else {
      text += op->is_issued() ? " is launched and not done" : " is ready or running";
    }
    text += "\n";
  }
  if (pending.size() > limit) text += "  … " + std::to_string(pending.size() - limit) + " more\n";
  return text;
}

}  // namespace weft
