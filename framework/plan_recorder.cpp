#include "framework/plan_recorder.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "framework/admit.hpp"
#include "framework/future.hpp"
#include "framework/gate.hpp"
#include "framework/kernel_code.hpp"
#include "framework/memory_pool.hpp"
#include "framework/plan_graph.hpp"
#include "framework/plan_state.hpp"
#include "framework/reduction.hpp"

namespace weft {
namespace {

PlanRecorder*& current() {
  thread_local PlanRecorder* recorder = nullptr;
  return recorder;
}

void add_edge(PlanGraph::Node& node, const PlanGraph::Edge& edge) {
  for (PlanGraph::Edge& known : node.edges)
    if (known.producer == edge.producer) {
      known.order_only = known.order_only && edge.order_only;
      known.until_done = known.until_done || edge.until_done;
      return;
    }
  node.edges.push_back(edge);
}

}  // namespace

PlanRecorder* PlanRecorder::of(const Fabric& fabric) {
  PlanRecorder* recorder = current();
  while (recorder && &recorder->fabric_ != &fabric) recorder = recorder->outer_;
  return recorder;
}

PlanRecorder::PlanRecorder(Fabric& fabric)
    : fabric_(fabric), outer_(current()), graph_(std::make_unique<PlanGraph>()) {
  if (of(fabric))
    throw UsageError("record: this thread is recording already; a plan holds no plan");
  if (fabric.gate && fabric.gate->is_shut()) {
    if (thread_must_not_wait())
      throw UsageError(
          "record: ops wait for memory or a device, and an actor's thread must not wait for them; "
          "record on another thread");
    fabric.gate->wait_until_open();
  }
  current() = this;
}

PlanRecorder::~PlanRecorder() {
  current() = outer_;
  for (const auto& [op, node] : nodes_) release(const_cast<Op*>(op));
  if (graph_) drop_plan(*graph_);
}

void PlanRecorder::refuse(const std::string& what) {
  if (problem_.empty()) problem_ = what;
}

std::uint32_t PlanRecorder::new_node(Op* op, std::size_t scalar_bytes) {
  const auto number = static_cast<std::uint32_t>(graph_->nodes.size());
  acquire(op);
  nodes_.emplace(op, number);
  PlanGraph::Node node;
  node.code = op->code;
  node.owner = op->owner;
  node.lane = op->lane;
  node.device = op->device;
  node.domain = op->domain;
  node.priority = op->priority;
  if (scalar_bytes > 0) {
    node.scalar_bytes = static_cast<std::uint32_t>(scalar_bytes);
    node.pattern = make_op(op->code, 0, 0, scalar_bytes);
    node.pattern->ticket = 0;  // how often the scalars had been set when these were
    copy_scalars(*op, *node.pattern, scalar_bytes);
  }
  if (fabric_.serial && number > 0) node.edges.push_back({number - 1, true, true});
  graph_->nodes.push_back(std::move(node));
  return number;
}

std::uint32_t PlanRecorder::tensor_of(TensorState* tensor) {
  const auto [found, is_new] =
      tensors_.emplace(tensor, static_cast<std::uint32_t>(graph_->tensors.size()));
  if (!is_new) return found->second;
  tensor->handles.fetch_add(2, std::memory_order_relaxed);
  PlanGraph::Tensor made;
  made.recorded = made.now = tensor;
  made.is_made_inside = made_.contains(tensor);
  graph_->tensors.push_back(std::move(made));
  return found->second;
}

std::uint32_t PlanRecorder::slot_of(Replica* replica) {
  const std::uint32_t tensor = tensor_of(replica->tensor);
  for (const std::uint32_t s : graph_->tensors[tensor].slots)
    if (graph_->slots[s].memory == replica->memory) {
      keep_for_plan(graph_->slots[s].kept, replica);
      return s;
    }
  const auto number = static_cast<std::uint32_t>(graph_->slots.size());
  PlanGraph::Slot slot;
  slot.tensor = tensor;
  slot.memory = replica->memory;
  graph_->slots.push_back(std::move(slot));
  keep_for_plan(graph_->slots.back().kept, replica);
  graph_->tensors[tensor].slots.push_back(number);
  return number;
}

void PlanRecorder::read(std::uint32_t node, std::uint32_t slot) {
  PlanGraph::Slot& from = graph_->slots[slot];
  PlanGraph::Node& reader = graph_->nodes[node];
  const std::uint32_t writer = graph_->tensors[from.tensor].writer;
  if (from.ready != PlanGraph::kNone) {
    add_edge(reader, {from.ready, false, false});
  } else if (writer != PlanGraph::kNone) {
    add_edge(reader, {writer, false, false});
  } else {
    from.is_read_first = from.is_valid = true;
    for (const PlanGraph::Entry& known : reader.entries)
      if (known.slot == slot) return;
    reader.entries.push_back({slot, PlanGraph::kNone});
  }
}

void PlanRecorder::write(std::uint32_t node, std::uint32_t slot) {
  PlanGraph::Tensor& tensor = graph_->tensors[graph_->slots[slot].tensor];
  PlanGraph::Node& writer = graph_->nodes[node];
  for (const std::uint32_t reader : tensor.readers)
    if (reader != node) add_edge(writer, {reader, true, false});
  if (tensor.writer == PlanGraph::kNone) {
    writer.entries.push_back({PlanGraph::kNone, graph_->slots[slot].tensor});
  } else if (tensor.readers.empty()) {
    add_edge(writer, {tensor.writer, true, false});
  }
  tensor.writer = node;
  tensor.readers.clear();
  for (const std::uint32_t other : tensor.slots) {
    graph_->slots[other].is_valid = other == slot;
    graph_->slots[other].ready = PlanGraph::kNone;
    graph_->slots[other].chunks.clear();
  }
}

void PlanRecorder::add_op(Op* op, std::size_t scalar_bytes, std::span<Op* const> after) {
  const KernelCode& code = *op->code;
  if (op->failure.load(std::memory_order_relaxed) && !op->owner)
    refuse("op " + code.name + " failed at once in the recording");
  if (code.destroy_scalars && !code.copy_scalars) {
    refuse("kernel " + code.name + " has a scalar that cannot be copied");
    return;
  }
  const std::uint32_t n = new_node(op, scalar_bytes);
  for (std::size_t i = 0; i < op->arg_count; ++i) {
    Replica* replica = op->args()[i].replica();
    if (!replica) return;  // an op that failed at once
    if (replica->pool == fabric_.program_memory.get())
      refuse("op " + code.name + " uses the program's own memory");
    const std::uint32_t slot = slot_of(replica);
    graph_->nodes[n].arguments.push_back({slot, op->args()[i].access()});
  }
  // All reads before all writes, as submission does it: a tensor may be read twice, never read and
  // written by different arguments.
  const auto arguments = graph_->nodes[n].arguments;
  for (const PlanGraph::Argument& argument : arguments)
    if (!overwrites(argument.access)) read(n, argument.slot);
  for (const PlanGraph::Argument& argument : arguments) {
    if (argument.access != Access::In) {
      write(n, argument.slot);
      continue;
    }
    auto& readers = graph_->tensors[graph_->slots[argument.slot].tensor].readers;
    if (readers.empty() || readers.back() != n) readers.push_back(n);
  }
  for (Op* producer : after) {
    if (!producer) continue;
    const auto found = nodes_.find(producer);
    if (found == nodes_.end())
      refuse("op " + code.name + " waits `after` a future that is no op of the recording");
    else
      graph_->nodes[n].after.push_back(found->second);
  }
  for (const std::uint32_t producer : graph_->nodes[n].after)
    add_edge(graph_->nodes[n], {producer, false, false});
}

void PlanRecorder::add_copy(Op* op, TensorState& tensor) {
  Replica* const from = op->args()[0].replica();
  Replica* const to = op->args()[1].replica();
  if (to->tensor != &tensor) return refuse("a copy out of a tensor");
  const auto known = tensors_.find(&tensor);
  // What the plan does not write is copied when a replay begins, if it is not there by then.
  if (known == tensors_.end() || graph_->tensors[known->second].writer == PlanGraph::kNone) return;
  const auto& range = *static_cast<const CopyRange*>(op->scalars());
  const std::uint32_t n = new_node(op, sizeof(CopyRange));
  const std::uint32_t source = slot_of(from), target = slot_of(to);
  PlanGraph::Node& node = graph_->nodes[n];
  node.arguments = {{source, Access::In}, {target, Access::Out}};
  const auto& before = graph_->slots[source].chunks;
  const auto same = std::find_if(before.begin(), before.end(),
                                 [&](const auto& chunk) { return chunk.first == range.offset; });
  if (same != before.end())
    add_edge(node, {same->second, false, false});
  else
    read(n, source);
  PlanGraph::Slot& made = graph_->slots[target];
  if (range.offset == 0) made.chunks.clear();
  if (!made.chunks.empty()) add_edge(node, {made.chunks.back().second, false, false});
  made.chunks.emplace_back(range.offset, n);
  made.ready = n;
  made.is_valid = true;
  graph_->tensors[known->second].readers.push_back(n);
}

Future PlanRecorder::all_done() const {
  std::vector<Future> all;
  for (const auto& [op, node] : nodes_) {
    acquire(const_cast<Op*>(op));
    all.emplace_back(const_cast<Op*>(op));
  }
  return when_all(all);
}

std::shared_ptr<PlanState> PlanRecorder::finish() {
  for (std::size_t t = 0; t < graph_->tensors.size(); ++t) {  // may add tensors
    const Argument argument{graph_->tensors[t].recorded, Access::In, nullptr};
    TensorLocks locks(fabric_, {&argument, 1});
    sum_up_partials(fabric_, *argument.tensor);
  }
  if (!problem_.empty()) throw UsageError("record: " + problem_ + ", which a plan cannot replay");
  graph_->trim();
  return std::make_shared<PlanState>(fabric_, std::move(graph_));
}

}  // namespace weft
