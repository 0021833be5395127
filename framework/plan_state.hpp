#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "framework/bundle.hpp"
#include "framework/call_builder.hpp"
#include "framework/future.hpp"
#include "framework/plan_bundles.hpp"
#include "framework/plan_graph.hpp"

namespace weft {

class PlanRecorder;

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
  /// `call`: which of the kernel's calls; without: all.
  void change_scalars(const KernelCode* kernel, std::optional<std::size_t> call,
                      void (*change)(void* scalars, const void* given), const void* given);
  [[nodiscard]] const PlanGraph& graph() const { return *graph_; }
  [[nodiscard]] const Fabric& fabric() const { return fabric_; }
  /// What goes out as one since the newest replay, a line for each: `gpu0: forward, update (6
  /// ops)`.
  [[nodiscard]] std::vector<std::string> bundles();

 private:
  void order_locks();
  void choose_form();
  void make_bundles();
  Op* make_member(const PlanGraph::Node& node) const;
  [[nodiscard]] bool may_bundle(std::uint32_t n) const;
  [[nodiscard]] bool may_be_late(const PlanGraph::Slot& slot) const;
  void give_up_moved_bundles();
  void drop_bundles();
  void keep_alone(std::uint32_t n);
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
  Op* join(Failure* doomed);

  // What a replay reads of a node, side by side: the graph's own are lists of lists.
  struct Step {
    const KernelCode* code;
    Mailbox* owner;
    Op* pattern;
    std::uint32_t scalar_bytes, lane;
    std::uint32_t first_argument, first_edge;
    std::uint16_t arguments, edges, waits, device;
    Domain domain;
    Priority priority;
    bool has_entries, writes_first;
  };

  // The nodes as they are sent: each by itself, or some as one.
  struct Form {
    explicit Form(const PlanGraph& from);

    const PlanGraph* graph;
    std::vector<Step> steps;
    std::vector<PlanGraph::Argument> arguments;
    std::vector<PlanGraph::Edge> edges;
    std::vector<std::uint32_t> sinks;
  };

  Fabric& fabric_;  // counted
  std::unique_ptr<PlanGraph> graph_;
  std::mutex mutex_;  // one replay at a time; bindings
  std::vector<Admission*> admissions_;
  std::vector<Argument> locked_;  // the tensors as they are now
  Form plain_;
  std::unique_ptr<BundledPlan> bundled_plan_;
  std::unique_ptr<Form> bundled_;       // null: not made, or changed since
  std::vector<Replica*> bundled_kept_;  // by slot: where bundles have their bytes; null: not used
  std::vector<bool> is_alone_;          // by node: the program sets what it works on
  std::vector<bool> is_set_;            // by tensor: the program has bound it
  std::size_t times_moved_ = 0;
  bool has_no_bundles_ = false;  // none can be made
  Form* form_ = nullptr;         // of this replay
  std::map<const KernelCode*, std::vector<std::uint32_t>>
      calls_;  // of those whose scalars were set
  // Scratch of a replay, kept so that none but the first allocates.
  std::vector<Op*> ops_;
  std::vector<Source> sources_;
};

}  // namespace weft
