#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/fabric.hpp"
#include "framework/op.hpp"
#include "framework/tensor_state.hpp"

namespace weft {

/// A plan as data: plain indices, no actor and no thread. Made by `PlanRecorder`, trimmed by
/// `trim`, replayed by `PlanState`.
struct PlanGraph {
  static constexpr std::uint32_t kNone = 0xffffffffu;

  /// One node waits for another.
  struct Edge {
    std::uint32_t producer = 0;
    bool order_only = false;
    bool until_done = false;
  };

  /// What an op waits for that was submitted before the replay.
  struct Entry {
    std::uint32_t slot = kNone;    ///< a read: what makes this replica valid
    std::uint32_t tensor = kNone;  ///< a write: the tensor's readers or writer
  };

  struct Argument {
    std::uint32_t slot = 0;
    Access access = Access::In;
  };

  struct Node {
    const KernelCode* code = nullptr;
    Mailbox* owner = nullptr;
    Op* pattern = nullptr;  ///< holds the scalars; never runs. Null without scalars
    std::uint32_t scalar_bytes = 0;
    std::uint32_t lane = 0;
    std::uint16_t device = 0;
    Domain domain = Domain::Host;
    Priority priority = Priority::Normal;
    bool is_sink = true;  ///< no other node fails with it
    std::vector<Argument> arguments;
    std::vector<Edge> edges;           ///< by producer, each once
    std::vector<std::uint32_t> after;  ///< those that no tensor tells of
    std::vector<Entry> entries;
  };

  /// A tensor in one memory.
  struct Slot {
    std::uint32_t tensor = 0;
    std::uint32_t memory = 0;
    Replica* kept = nullptr;      ///< counted in `Replica::plans`
    bool is_read_first = false;   ///< must be valid when the replay begins
    bool is_valid = false;        ///< while recording: now; then: when the replay ends
    std::uint32_t ready = kNone;  ///< the last chunk of the copy that makes it so; none: the writer
    /// While recording: chunks of that copy, by their first byte.
    std::vector<std::pair<std::size_t, std::uint32_t>> chunks;
  };

  struct Tensor {
    TensorState* recorded = nullptr;  ///< a handle is held, as of `now`
    TensorState* now = nullptr;
    std::uint32_t writer = kNone;
    /// Since the last write; after `trim` those that no other implies.
    std::vector<std::uint32_t> readers;
    bool is_made_inside = false;  ///< while the plan was recorded
    std::vector<std::uint32_t> slots;
  };

  std::vector<Node> nodes;
  std::vector<Slot> slots;
  std::vector<Tensor> tensors;
  std::size_t waits_recorded = 0;  ///< edges before `trim`

  /// Takes out edges, entries and readers that others imply, and finds the sinks. A wait for data
  /// is implied only by a way along data, so that failures arrive as before.
  void trim();
  [[nodiscard]] std::size_t edge_count() const;
};

/// For people, for Graphviz, for programs.
std::string explain_plan(const PlanGraph& graph, const Fabric& fabric);
std::string plan_as_dot(const PlanGraph& graph, const Fabric& fabric);
std::string plan_as_json(const PlanGraph& graph, const Fabric& fabric);

}  // namespace weft
