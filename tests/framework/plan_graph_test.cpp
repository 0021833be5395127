#include "framework/plan_graph.hpp"

#include <random>
#include <set>

#include "support/catch.hpp"

using namespace weft;

namespace {

using Edge = PlanGraph::Edge;

PlanGraph graph_of(const std::vector<std::vector<Edge>>& edges) {
  PlanGraph graph;
  for (const auto& each : edges) {
    PlanGraph::Node node;
    node.edges = each;
    graph.nodes.push_back(node);
  }
  return graph;
}

std::set<std::uint32_t> producers(const PlanGraph& graph, std::size_t node) {
  std::set<std::uint32_t> all;
  for (const Edge& edge : graph.nodes[node].edges) all.insert(edge.producer);
  return all;
}

// All that come before `node`, along data only or along every edge.
std::set<std::uint32_t> ancestors(const PlanGraph& graph, std::uint32_t node, bool data_only) {
  std::set<std::uint32_t> all;
  std::vector<std::uint32_t> open{node};
  while (!open.empty()) {
    const std::uint32_t n = open.back();
    open.pop_back();
    for (const Edge& edge : graph.nodes[n].edges)
      if (!(data_only && edge.order_only) && all.insert(edge.producer).second)
        open.push_back(edge.producer);
  }
  return all;
}

}  // namespace

TEST_CASE("a wait that another implies is dropped", "[plan]") {
  PlanGraph graph = graph_of({{}, {{0}}, {{0}, {1}}, {{0, true}, {2}}});
  graph.trim();
  CHECK(producers(graph, 2) == std::set<std::uint32_t>{1});
  CHECK(producers(graph, 3) == std::set<std::uint32_t>{2});
  CHECK(graph.waits_recorded == 5);
  CHECK(graph.edge_count() == 3);
  CHECK(graph.nodes[3].is_sink);
  CHECK_FALSE(graph.nodes[2].is_sink);
}

TEST_CASE("a wait for data stays where only order implies it", "[plan]") {
  PlanGraph graph = graph_of({{}, {{0, true}}, {{0}, {1}}});
  graph.trim();
  CHECK(producers(graph, 2) == std::set<std::uint32_t>{0, 1});
  // Nothing fails with an op that is waited for only for order.
  PlanGraph other = graph_of({{}, {{0, true}}});
  other.trim();
  CHECK(other.nodes[0].is_sink);
}

TEST_CASE("a wait for the end, whatever the domains, stays", "[plan]") {
  PlanGraph graph = graph_of({{}, {{0}}, {{0, true, true}, {1}}});
  graph.trim();
  CHECK(producers(graph, 2) == std::set<std::uint32_t>{0, 1});
}

TEST_CASE("trimmed random graphs order the same ops and fail the same ops", "[plan]") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<Edge>> edges(2 + random() % 60);
    for (std::uint32_t n = 1; n < edges.size(); ++n) {
      std::set<std::uint32_t> chosen;
      for (std::uint64_t e = random() % 6; e > 0; --e)
        chosen.insert(static_cast<std::uint32_t>(random() % n));
      for (const std::uint32_t producer : chosen) edges[n].push_back({producer, random() % 3 == 0});
    }
    const PlanGraph before = graph_of(edges);
    PlanGraph after = graph_of(edges);
    after.trim();
    for (std::uint32_t n = 0; n < edges.size(); ++n) {
      REQUIRE(ancestors(after, n, false) == ancestors(before, n, false));
      REQUIRE(ancestors(after, n, true) == ancestors(before, n, true));
    }
  }
}

TEST_CASE("a graph longer than the window is trimmed where it can be", "[plan]") {
  std::vector<std::vector<Edge>> edges(10'000);
  for (std::uint32_t n = 1; n < edges.size(); ++n) {
    edges[n].push_back({n - 1});
    if (n >= 2) edges[n].push_back({n - 2});
  }
  PlanGraph graph = graph_of(edges);
  graph.trim();
  CHECK(graph.edge_count() == edges.size() - 1);
}
