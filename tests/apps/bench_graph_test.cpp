#include <algorithm>
#include <set>
#include <utility>

#include "apps/bench/graph.hpp"
#include "support/catch.hpp"

using weft::bench::OpGraph;

TEST_CASE("successors are the other side of predecessors", "[bench]") {
  for (const auto& pattern : OpGraph::patterns()) {
    INFO(pattern);
    const OpGraph graph(pattern, 0, 777);
    std::multiset<std::pair<std::uint32_t, std::uint32_t>> back, ahead;
    for (std::uint32_t op = 0; op < graph.ops(); ++op) {
      graph.node(op).for_each_predecessor([&](std::uint32_t before) {
        CHECK(before < op);
        back.emplace(before, op);
      });
      graph.node(op).for_each_successor([&](std::uint32_t behind) {
        CHECK(behind < graph.ops());
        ahead.emplace(op, behind);
      });
    }
    CHECK(back == ahead);
  }
}

TEST_CASE("an op reads what its predecessors wrote, and nobody writes it in between", "[bench]") {
  for (const auto& pattern : OpGraph::patterns()) {
    INFO(pattern);
    const OpGraph graph(pattern, 0, 500);
    for (std::uint32_t op = 0; op < graph.ops(); ++op) {
      std::multiset<std::uint32_t> read, written;
      graph.node(op).for_each_read([&](std::uint32_t datum) {
        CHECK(datum < graph.data());
        CHECK(datum != graph.node(op).written());
        read.insert(datum);
      });
      graph.node(op).for_each_predecessor([&](std::uint32_t before) {
        const std::uint32_t datum = graph.node(before).written();
        written.insert(datum);
        for (std::uint32_t between = before + 1; between < op; ++between)
          CHECK((graph.node(op).is_update() || graph.node(between).written() != datum));
      });
      if (!graph.node(op).is_update()) CHECK(read == written);
    }
  }
}

TEST_CASE("a stencil follows its column and both neighbours", "[bench]") {
  const OpGraph graph("stencil", 4, 12);
  const auto before = [&](std::uint32_t op) {
    std::set<std::uint32_t> ops;
    graph.node(op).for_each_predecessor([&](std::uint32_t each) { ops.insert(each); });
    return ops;
  };
  CHECK(before(2).empty());
  CHECK(before(4) == std::set<std::uint32_t>{0, 1});
  CHECK(before(6) == std::set<std::uint32_t>{1, 2, 3});
  CHECK(before(11) == std::set<std::uint32_t>{6, 7});
}

TEST_CASE("graphs that cannot be are refused", "[bench]") {
  CHECK_THROWS_AS(OpGraph("ring", 0, 1), std::invalid_argument);
  CHECK_THROWS_AS(OpGraph("fork-join", 9, 1), std::invalid_argument);
  CHECK_THROWS_AS(OpGraph("chain", 0, 0), std::invalid_argument);
}
