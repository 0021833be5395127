#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/call_builder.hpp"
#include "framework/future.hpp"
#include "framework/plan_graph.hpp"

namespace weft {

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
  void change_scalars(const KernelCode* kernel, void (*change)(void* scalars, const void* given),
                      const void* given);
  [[nodiscard]] const PlanGraph& graph() const { return *graph_; }
  [[nodiscard]] const Fabric& fabric() const { return fabric_; }

 private:
  void order_locks();
  bool prepare(Reservation& reservation);
  bool prepare_slot(std::size_t s, Reservation& reservation);
  Op* build(Failure* doomed);
  Op* make(const PlanGraph::Node& node, Failure* doomed);
  void follow_others(std::uint32_t n, Op* op, const DependencySet& outside);
  void find_outside(const PlanGraph::Node& node, DependencySet& outside) const;
  void leave_tensor(PlanGraph::Tensor& tensor);
  Op* join(Failure* doomed);

  Fabric& fabric_;  // counted
  std::unique_ptr<PlanGraph> graph_;
  std::mutex mutex_;  // one replay at a time; bindings
  std::vector<Admission*> admissions_;
  std::vector<Argument> locked_;  // the tensors as they are now
  // Scratch of a replay, kept so that none but the first allocates.
  std::vector<Op*> ops_;
  std::vector<Source> sources_;
};

}  // namespace weft
