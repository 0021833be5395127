#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "framework/gate.hpp"
#include "framework/kernel_code.hpp"
#include "framework/tensor.hpp"
#include "framework/trial_op.hpp"

// What the gate's files share.
namespace weft {

class Placer;

constexpr std::uint32_t kUnplanned = std::numeric_limits<std::uint32_t>::max();

// Of an op that was placed late, whose device may be given another when it has settled.
struct PlacedLate {
  Placer* placer;
  const Place* place;  // null until it has one
};

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
  double planned_begin = 0;   // seconds from the plan
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

}  // namespace weft
