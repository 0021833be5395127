#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/kernel_code.hpp"
#include "framework/memory_pool.hpp"
#include "framework/plan_graph.hpp"
#include "framework/submit.hpp"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// `gpu1`, `socket0 core 3`, `mem0 to gpu0`, `collectives`
std::string actor_of(const PlanGraph& graph, const Fabric& fabric, const PlanGraph::Node& node) {
  if (node.code->is_copy) {
    const auto memory = [&](std::size_t i) {
      return fabric.memories[graph.slots[node.arguments[i].slot].memory]->name();
    };
    return memory(0) + " to " + memory(1);
  }
  if (node.code->is_collective) return "collectives";
  const Place& place = *fabric.places[node.device];
  if (place.kind == DeviceKind::Gpu || place.lanes.size() < 2) return place.name;
  return place.name + " core " + std::to_string(node.lane);
}

std::size_t copied(const PlanGraph::Node& node) {
  return node.code->is_copy ? copied_bytes(*node.pattern) : 0;
}

struct ActorPart {
  std::size_t ops = 0, waits_for_others = 0, bytes = 0;
  std::map<std::string, std::size_t> kernels;
};

std::map<std::string, ActorPart> parts_of(const PlanGraph& graph, const Fabric& fabric) {
  std::map<std::string, ActorPart> parts;
  for (const PlanGraph::Node& node : graph.nodes) {
    const std::string actor = actor_of(graph, fabric, node);
    ActorPart& part = parts[actor];
    ++part.ops;
    ++part.kernels[node.code->name];
    part.bytes += copied(node);
    for (const PlanGraph::Edge& edge : node.edges)
      part.waits_for_others += actor_of(graph, fabric, graph.nodes[edge.producer]) != actor;
  }
  return parts;
}

std::size_t bytes_kept(const PlanGraph& graph) {
  std::size_t bytes = 0;
  for (const PlanGraph::Slot& slot : graph.slots) bytes += slot.kept ? slot.kept->bytes : 0;
  return bytes;
}

std::size_t entry_count(const PlanGraph& graph) {
  return static_cast<std::size_t>(
      std::count_if(graph.slots.begin(), graph.slots.end(),
                    [](const PlanGraph::Slot& slot) { return slot.is_read_first; }));
}

}  // namespace

std::string explain_plan(const PlanGraph& graph, const Fabric& fabric) {
  std::string text = "plan: " + std::to_string(graph.nodes.size()) + " ops, " +
                     std::to_string(graph.edge_count()) + " waits left of " +
                     std::to_string(graph.waits_recorded) + ", " +
                     std::to_string(graph.tensors.size()) + " tensors, " +
                     std::to_string(bytes_kept(graph)) + " bytes kept, " +
                     std::to_string(entry_count(graph)) + " replicas wanted at the start\n";
  for (const auto& [actor, part] : parts_of(graph, fabric)) {
    text += "  " + actor + ": " + std::to_string(part.ops) + " ops, " +
            std::to_string(part.waits_for_others) + " waits for other actors";
    if (part.bytes) text += ", " + std::to_string(part.bytes) + " bytes";
    text += ":";
    for (const auto& [kernel, count] : part.kernels)
      text += " " + kernel + (count > 1 ? " x" + std::to_string(count) : "");
    text += "\n";
  }
  return text;
}

std::string plan_as_dot(const PlanGraph& graph, const Fabric& fabric) {
  std::string text = "digraph plan {\n  rankdir=LR;\n  node [shape=box];\n";
  std::map<std::string, std::vector<std::size_t>> by_actor;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    by_actor[actor_of(graph, fabric, graph.nodes[n])].push_back(n);
  std::size_t cluster = 0;
  for (const auto& [actor, nodes] : by_actor) {
    text += "  subgraph cluster_" + std::to_string(cluster++) +
            " {\n    label=" + Json(actor).dump() + ";\n";
    for (const std::size_t n : nodes)
      text += "    n" + std::to_string(n) + " [label=" + Json(graph.nodes[n].code->name).dump() +
              "];\n";
    text += "  }\n";
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const PlanGraph::Edge& edge : graph.nodes[n].edges)
      text += "  n" + std::to_string(edge.producer) + " -> n" + std::to_string(n) +
              (edge.order_only ? " [style=dashed]" : "") + ";\n";
  return text + "}\n";
}

std::string plan_as_json(const PlanGraph& graph, const Fabric& fabric) {
  Json json{{"ops", Json::array()},
            {"tensors", Json::array()},
            {"waits", graph.edge_count()},
            {"waits_recorded", graph.waits_recorded},
            {"bytes_kept", bytes_kept(graph)}};
  for (const PlanGraph::Node& node : graph.nodes) {
    Json op{{"kernel", node.code->name},
            {"actor", actor_of(graph, fabric, node)},
            {"arguments", Json::array()},
            {"waits_for", Json::array()}};
    for (const PlanGraph::Argument& argument : node.arguments)
      op["arguments"].push_back(graph.slots[argument.slot].tensor);
    for (const PlanGraph::Edge& edge : node.edges) op["waits_for"].push_back(edge.producer);
    if (const std::size_t bytes = copied(node)) op["bytes"] = bytes;
    json["ops"].push_back(op);
  }
  for (const PlanGraph::Tensor& tensor : graph.tensors)
    json["tensors"].push_back({{"shape", tensor.now->shape.to_string()},
                               {"bytes", tensor.now->bytes()},
                               {"is_written", tensor.writer != PlanGraph::kNone}});
  return json.dump(2) + "\n";
}

}  // namespace weft
