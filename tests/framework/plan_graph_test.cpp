#include "framework/plan_graph.hpp"
#include "framework/plan_bundles.hpp"

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

TEST_CASE("entries and readers are dropped only where others stand for them", "[plan]") {
  std::mt19937_64 random(11);
  std::size_t dropped = 0;
  for (int round = 0; round < 200; ++round) {
    // Nodes read one slot of a tensor that nobody writes, or none.
    std::vector<std::vector<Edge>> edges(2 + random() % 40);
    PlanGraph graph;
    for (std::uint32_t n = 1; n < edges.size(); ++n)
      for (std::uint64_t e = random() % 3; e > 0; --e)
        edges[n].push_back({static_cast<std::uint32_t>(random() % n), random() % 3 == 0});
    graph = graph_of(edges);
    graph.tensors.resize(1);
    graph.slots.resize(1);
    graph.tensors[0].slots = {0};
    std::set<std::uint32_t> read_by;
    for (std::uint32_t n = 0; n < edges.size(); ++n) {
      if (random() % 2) continue;
      graph.nodes[n].arguments = {{0, Access::In}};
      graph.nodes[n].entries = {{0, PlanGraph::kNone}};
      graph.tensors[0].readers.push_back(n);
      read_by.insert(n);
    }
    graph.trim();
    const auto& left = graph.tensors[0].readers;
    for (const std::uint32_t n : read_by) {
      if (graph.nodes[n].entries.empty()) {
        ++dropped;
        const auto before = ancestors(graph, n, true);
        CHECK(std::any_of(before.begin(), before.end(), [&](std::uint32_t other) {
          return !graph.nodes[other].entries.empty();
        }));
      }
      if (std::find(left.begin(), left.end(), n) != left.end()) continue;
      ++dropped;
      CHECK(std::any_of(left.begin(), left.end(), [&](std::uint32_t reader) {
        return ancestors(graph, reader, false).contains(n);
      }));
    }
  }
  CHECK(dropped > 1000);
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

namespace {

// Never looked into: who owns a node is told by the address alone.
Mailbox* actor(std::uintptr_t number) {
  return reinterpret_cast<Mailbox*>(64 * (number + 1));
}

std::vector<std::vector<std::uint32_t>> bundled(PlanGraph& graph, const std::string& owners) {
  for (std::size_t n = 0; n < owners.size(); ++n)
    graph.nodes[n].owner = actor(static_cast<std::uintptr_t>(owners[n]));
  return bundle_nodes(graph, std::vector<bool>(owners.size(), true),
                      std::vector<bool>(graph.slots.size(), true))
      .members;
}

}  // namespace

TEST_CASE("nodes that follow each other on one device go together", "[plan]") {
  using Members = std::vector<std::vector<std::uint32_t>>;
  PlanGraph chain = graph_of({{}, {{0}}, {{1}}, {{2}}});
  CHECK(bundled(chain, "AAAA") == Members{{0, 1, 2, 3}});
  // Another actor waits for the second and is waited for by the third.
  PlanGraph through = graph_of({{}, {{0}}, {{1}}, {{1}, {2}}, {{3}}});
  CHECK(bundled(through, "AABAA") == Members{{0, 1}, {2}, {3, 4}});
  // What does not need a member's data stays by itself, and keeps nothing apart.
  PlanGraph apart = graph_of({{}, {}, {{0}}, {{1}}, {{2, true}}});
  CHECK(bundled(apart, "AAAAA") == Members{{0, 2}, {1, 3}, {4}});
  // A node that is left alone stands between two that would go together.
  PlanGraph between = graph_of({{}, {{0}}, {{0}, {1}}});
  for (auto& node : between.nodes) node.owner = actor(0);
  CHECK(bundle_nodes(between, {true, false, true}, {}).members == Members{{0}, {1}, {2}});
  // Data from before the plan may come late.
  PlanGraph entering = graph_of({{}, {{0}}, {{1}}});
  entering.slots.resize(2);
  entering.nodes[0].entries = {{0, PlanGraph::kNone}};
  entering.nodes[1].entries = {{0, PlanGraph::kNone}};
  entering.nodes[2].entries = {{1, PlanGraph::kNone}};
  CHECK(bundled(entering, "AAA") == Members{{0, 1}, {2}});
  CHECK(bundle_nodes(entering, {true, true, true}, {true, false}).members == Members{{0, 1, 2}});
  // A step that needs what the step before has made and what it loads by itself.
  PlanGraph steps = graph_of({{}, {{0}}, {}, {{1}, {2}}});
  CHECK(bundled(steps, "AAAA") == Members{{0, 1, 2, 3}});
  PlanGraph fed =
      graph_of({{}, {{0}}, {}, {{2}}, {{1}, {3}}});  // the second load comes over a link
  CHECK(bundled(fed, "AABAA") == Members{{0, 1}, {2}, {3, 4}});
  // Two steps whose data come by one copy: the second has nothing more to wait for.
  PlanGraph together = graph_of({{}, {{0}}, {{1}}, {{0}}, {{2}, {3}}});
  CHECK(bundled(together, "BAAAA") == Members{{0}, {1, 2, 3, 4}});
}

TEST_CASE("bundles keep every order there was, and add no circle", "[plan]") {
  std::mt19937_64 random(17);
  std::size_t bundles = 0;
  for (int round = 0; round < 1500; ++round) {
    const std::uint32_t count = 2 + random() % 60;
    const std::uint64_t owners = 1 + static_cast<std::uint64_t>(round) % 3;
    PlanGraph graph;
    std::vector<bool> may;
    for (std::uint32_t n = 0; n < count; ++n) {
      PlanGraph::Node node;
      node.owner = actor(random() % owners);
      std::set<std::uint32_t> before;
      for (std::uint64_t i = random() % 4; n > 0 && i > 0; --i)
        before.insert(n - 1 - static_cast<std::uint32_t>(random() % std::min(n, 8u)));
      for (const std::uint32_t producer : before)
        node.edges.push_back({producer, random() % 3 == 0});
      graph.nodes.push_back(node);
      may.push_back(random() % 5 != 0);
    }
    PlanGraph::Tensor tensor;
    tensor.writer = static_cast<std::uint32_t>(random() % count);
    tensor.readers = {static_cast<std::uint32_t>(random() % count)};
    graph.tensors.push_back(tensor);
    const BundledPlan made = bundle_nodes(graph, may, {});
    bundles += made.bundles;
    REQUIRE(made.graph.nodes.size() == made.members.size());
    std::vector<std::uint32_t> place(count, PlanGraph::kNone);
    for (std::uint32_t at = 0; at < made.members.size(); ++at)
      for (const std::uint32_t n : made.members[at]) {
        REQUIRE(place[n] == PlanGraph::kNone);
        place[n] = at;
        CHECK(graph.nodes[n].owner == made.graph.nodes[at].owner);
        if (made.members[at].size() > 1) CHECK(may[n]);
      }
    for (std::uint32_t n = 0; n < count; ++n) {
      REQUIRE(place[n] != PlanGraph::kNone);
      for (const std::uint32_t before : ancestors(graph, n, false)) {
        if (place[before] == place[n]) continue;
        CHECK(place[before] < place[n]);
        CHECK(ancestors(made.graph, place[n], false).contains(place[before]));
      }
    }
    CHECK(made.graph.tensors[0].writer == place[tensor.writer]);
    if (place[tensor.readers[0]] != place[tensor.writer])
      CHECK(made.graph.tensors[0].readers == std::vector{place[tensor.readers[0]]});
  }
  CHECK(bundles > 200);
}
