#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "framework/fabric.hpp"
#include "framework/followers.hpp"
#include "framework/op.hpp"
#include "framework/plan_form.hpp"

namespace weft {

/// Which ops of a plan are made once and stay from replay to replay, and how they hang together.
/// Those that sockets run and of which nobody outside the plan hears: they wait for ops of the plan
/// alone, and no tensor is left with one of them as its writer or reader. The others are made for
/// each replay. Plain data, shared by all runs.
class StandingOps {
 public:
  /// Null if too few of the form's nodes would stand.
  static std::shared_ptr<const StandingOps> of(const PlanForm& form);

  /// A standing op's follower that is made for each replay: node `to`, or the replay's end.
  struct Link {
    std::uint32_t from = 0;   ///< the standing node
    std::uint32_t place = 0;  ///< among its followers
    bool order_only = false;
  };
  struct Use {
    std::uint32_t node = 0;
    std::uint16_t argument = 0;
  };
  /// A node that stands, and its block.
  struct Node {
    std::uint32_t number = 0;
    std::uint32_t followers = 0;
    std::size_t offset = 0;
  };

  std::vector<Node> nodes;
  std::vector<std::uint32_t> made;  ///< the nodes that are made for each replay
  std::size_t bytes = 0;            ///< of all blocks
  /// By node and, at the end, the replay's end: those that let it go, from `links[first_link[n]]`.
  std::vector<Link> links;
  std::vector<std::uint32_t> first_link;
  /// Those that wait for a node that is made for each replay.
  struct Follower {
    std::uint32_t producer = 0, node = 0;
    bool order_only = false;
  };
  std::vector<Follower> followers;
  /// The plan's slots that they use: who does, from `uses[first_use[i]]`.
  std::vector<std::uint32_t> slots;
  std::vector<Use> uses;
  std::vector<std::uint32_t> first_use;
  std::vector<std::uint32_t> roots;  ///< that wait for nothing, by owner
  std::vector<std::pair<Admission*, std::int64_t>> counts;
};

/// Standing ops of one replay at a time. When one settles it is as it was before, so the next
/// replay need not touch it.
class StandingRun {
 public:
  StandingRun(Fabric& fabric, const PlanForm& form);
  ~StandingRun();
  StandingRun(const StandingRun&) = delete;
  StandingRun& operator=(const StandingRun&) = delete;

  /// No replay is under way on it.
  [[nodiscard]] bool is_free() const { return !end_ || end_->is_settled(); }
  /// A replay is prepared: arguments as the plan's slots are now, and the scalars that were changed
  /// since the last: patterns whose ticket is above `version` then.
  void prepare(const PlanForm& form, const PlanGraph& plan, std::uint32_t version);
  /// `op` is node `n` of this replay; with the number of nodes, its end. The standing ops before it
  /// will let it go.
  void follow(std::uint32_t n, Op* op);
  /// The others of this replay are made, and none has been let go: they will let go those that
  /// stand.
  void connect();
  /// All are connected: those that wait for nothing may run, and a replay is under way until `end`
  /// has settled.
  void start(Op* end);

  /// By node; of those that do not stand, this replay's.
  std::vector<Op*> ops;

  /// For diagnosis, under the fabric's `standing_mutex`: calls `visit(Op*)` for those that the
  /// replay under way has not settled.
  template <class Visit>
  void visit_pending(const Visit& visit) const {
    if (is_free()) return;
    for (const StandingOps::Node& node : shape_->nodes) {
      Op* const op = ops[node.number];
      if (op->standing->times.load(std::memory_order_relaxed) != times_) visit(op);
    }
  }

 private:
  struct FreeBlocks {
    void operator()(char* blocks) const;
  };

  Fabric& fabric_;  // counted
  std::shared_ptr<const StandingOps> shape_;
  std::unique_ptr<char, FreeBlocks> blocks_;
  std::vector<Replica*> kept_;  // by the slots that are used
  std::uint32_t version_ = 0;   // of the scalars
  std::uint32_t times_ = 0;     // replays begun
  Op* end_ = nullptr;           // of the last one; counted
};

}  // namespace weft
