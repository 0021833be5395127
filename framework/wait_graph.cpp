#include "framework/wait_graph.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <vector>

#include "framework/followers.hpp"
#include "framework/kernel_code.hpp"
#include "framework/mailbox.hpp"
#include "framework/op_pool.hpp"

namespace weft {
namespace {

std::string place_of(const Fabric& fabric, const Op& op) {
  if (!op.owner) return "";
  for (const auto& place : fabric.places)
    if (op.owner->admission() == place->admission.get()) return " on " + place->name;
  return " on a link";
}

bool belongs(const Fabric& fabric, const Op& op) {
  if (!op.owner) return true;
  const Admission* admission = op.owner->admission();
  for (const auto& place : fabric.places)
    if (place->admission.get() == admission) return true;
  for (const auto& link : fabric.link_admissions)
    if (link.get() == admission) return true;
  return false;
}

std::string name_of(const Op& op) {
  std::string name = op.code->name;
  if (name == "promise")
    name += " \"" + *static_cast<const std::string*>(const_cast<Op&>(op).scalars()) + "\"";
  return name + " #" + std::to_string(reinterpret_cast<std::uintptr_t>(&op) / 64 % 100000);
}

}  // namespace

std::string describe_waits(const Fabric& fabric, std::size_t limit) {
  std::set<Op*> pending;
  op_pool::for_each_block([&](void* block) {
    auto* op = static_cast<Op*>(block);
    if (op->is_alive() && !op->is_settled() && belongs(fabric, *op)) pending.insert(op);
  });
  std::unordered_map<Op*, std::vector<Op*>> waits_for;
  for (Op* producer : pending)
    visit_followers(producer, [&](Op* follower) {
      if (pending.contains(follower)) waits_for[follower].push_back(producer);
    });
  std::string text;
  std::size_t lines = 0;
  for (Op* op : pending) {
    const std::string& name = op->code->name;
    if (!op->owner && name != "promise" && !waits_for.contains(op)) continue;
    if (++lines > limit) break;
    text += "  " + name_of(*op) + place_of(fabric, *op);
    if (const auto found = waits_for.find(op); found != waits_for.end()) {
      text += " waits for ";
      for (std::size_t i = 0; i < found->second.size(); ++i)
        text += (i ? ", " : "") + name_of(*found->second[i]) + place_of(fabric, *found->second[i]);
    } else if (name == "promise") {
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
