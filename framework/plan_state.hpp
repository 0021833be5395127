#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/bundle.hpp"
#include "framework/call_builder.hpp"
#include "framework/future.hpp"
#include "framework/plan_bundles.hpp"
#include "framework/plan_form.hpp"
#include "framework/plan_graph.hpp"

namespace weft {

class PlanRecorder;
class StandingRun;

/// Ends what a graph holds: replicas kept, handles, scalars. Any thread.
void drop_plan(PlanGraph& graph);

/// A plan that can be replayed: its graph, and where its tensors are now.
class PlanState {
 public:
  PlanState(Fabric& fabric, std::unique_ptr<PlanGraph> graph);
  ~PlanState();
  PlanState(const PlanState&) = delete;
  PlanState& operator=(const PlanState&) = delete;

  Future replay();
  void bind(TensorState* recorded, TensorState* now);
  /// Tensor number `tensor` of the plan is `now` from the next replay on.
  struct Binding {
    std::uint32_t tensor = 0;
    TensorState* now = nullptr;
  };
  /// Several at once, so that two may change places.
  void bind(std::span<const Binding> bindings);
  /// `bind`, then `replay`, with nothing in between; nothing, and nothing done, if two of the
  /// plan's tensors, one of them written, would become the same.
  std::optional<Future> replay_with(std::span<const Binding> bindings);
  /// Nothing if the plan does not use it.
  [[nodiscard]] std::optional<std::uint32_t> number_of(const TensorState* recorded) const;
  /// `call`: which of the kernel's calls; without: all.
  void change_scalars(const KernelCode* kernel, std::optional<std::size_t> call,
                      void (*change)(void* scalars, const void* given), const void* given);
  [[nodiscard]] const PlanGraph& graph() const { return *graph_; }
  [[nodiscard]] const Fabric& fabric() const { return fabric_; }
  /// What goes out as one since the newest replay, a line for each: `gpu0: forward, update (6
  /// ops)`.
  [[nodiscard]] std::vector<std::string> bundles();
  /// How many ops of the newest replay were not made for it, but stand.
  [[nodiscard]] std::size_t standing();

 private:
  void order_locks();
  void check_binding(const Binding& binding) const;
  [[nodiscard]] bool makes_two_the_same(std::span<const Binding> bindings) const;
  void bind_now(std::span<const Binding> bindings);
  Future replay_now();
  void begin_form();
  void choose_form();
  void make_bundles();
  Op* make_member(const PlanGraph::Node& node) const;
  [[nodiscard]] bool may_bundle(std::uint32_t n) const;
  [[nodiscard]] bool may_be_late(const PlanGraph::Slot& slot) const;
  void keep_in_slot(std::uint32_t s, Replica* replica);
  void renew_bundles();
  void drop_bundles();
  void note_bound(std::uint32_t tensor);
  void change_one(std::uint32_t n, void (*change)(void* scalars, const void* given),
                  const void* given);
  void make_stale_member(std::uint32_t n);
  void leave_restless_alone();
  void wait_for_gate();
  bool prepare(Reservation& reservation);
  bool prepare_slot(std::size_t s, Reservation& reservation);
  Op* build(Failure* doomed);
  Op* make(std::uint32_t n, const DependencySet& outside, Failure* doomed);
  void record(PlanRecorder& recorder, std::uint32_t n) const;
  void follow_others(std::uint32_t n, std::uint32_t first, const DependencySet& outside);
  void find_outside(const PlanGraph::Node& node, DependencySet& outside) const;
  void make_others_stale(std::uint32_t n);
  void leave_tensor(std::size_t t);
  [[nodiscard]] std::shared_ptr<StandingRun> choose_run();
  void note_producer(Op& op, const Op& producer);
  Op* join(Failure* doomed);

  // Where a node is in the bundled plan.
  struct MemberPlace {
    std::uint32_t node = PlanGraph::kNone;  // of the bundled plan; none: in no bundle
    std::uint32_t member = 0;
  };
  // How often in a row a node was replaced in its bundle.
  struct Unrest {
    std::uint64_t replay = 0;
    std::uint32_t in_a_row = 0;
    bool is_stale = false;  // among `stale_members_`
  };

  Fabric& fabric_;  // counted
  std::unique_ptr<PlanGraph> graph_;
  std::mutex mutex_;  // one replay at a time; bindings
  std::vector<Admission*> admissions_;
  std::vector<Argument> locked_;  // the tensors as they are now
  PlanForm plain_;
  std::unique_ptr<BundledPlan> bundled_plan_;
  std::unique_ptr<PlanForm> bundled_;                      // null: not made, or changed since
  std::vector<std::vector<std::uint32_t>> bundled_users_;  // by slot: nodes in bundles that use it
  std::vector<MemberPlace> bundled_places_;                // by node
  std::vector<std::uint32_t> stale_members_;  // nodes that their bundles have as they were
  std::vector<std::uint32_t> renewed_;        // at the newest replay
  std::vector<Unrest> unrest_;                // by node
  std::vector<bool> is_alone_;                // by node: changed too often for what it costs
  std::vector<bool> is_set_;                  // by tensor: the program has bound it
  std::uint64_t replays_ = 0;
  bool may_go_together_ = false;  // in this replay
  bool has_no_bundles_ = false;   // none can be made
  PlanForm* form_ = nullptr;      // of this replay
  std::uint32_t times_set_ = 0;   // scalars have been, so far
  std::map<const KernelCode*, std::vector<std::uint32_t>>
      calls_;  // of those whose scalars were set
  // Of the replay being made: its ops by node, and what stands among them.
  Op** ops_ = nullptr;
  std::shared_ptr<StandingRun> run_;
  std::size_t stood_ = 0;           // ops of the newest replay
  bool waits_for_program_ = false;  // one of those made so far
  // Scratch of a replay, kept so that none but the first allocates.
  std::vector<Op*> made_;
  std::vector<Source> sources_;
};

}  // namespace weft
