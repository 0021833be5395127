// A random layered graph: each node reads some nodes of the layer before and runs on a random
// device. What is drawn depends on the seed and the sizes alone, not on the devices.
#include <algorithm>

#include "apps/mlp/random.hpp"
#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"

namespace weft::workloads {
namespace {

using Word = std::uint32_t;  // sums wrap around, so every order of them gives the same

constexpr Word mixed(Word value, Word salt) {
  value = (value ^ salt) * 0x9e3779b1u;
  return value ^ (value >> 15);
}

const auto& begin_node() {
  static const auto kernel = Kernel("begin_node")
                                 .cpu([](Cpu&, Word salt, Out<Word> node) {
                                   for (std::size_t i = 0; i < node.size(); ++i)
                                     node[i] = mixed(static_cast<Word>(i), salt);
                                 })
                                 .cost([](Word, Out<Word> node) {
                                   return Cost{3.0 * static_cast<double>(node.size()),
                                               4.0 * static_cast<double>(node.size())};
                                 });
  return kernel;
}

const auto& add_parent() {
  static const auto kernel = Kernel("add_parent")
                                 .cpu([](Cpu& cpu, Word salt, In<Word> parent, InOut<Word> node) {
                                   cpu.parallel_for(node.size(), [&](std::size_t i) {
                                     node[i] += mixed(parent[i], salt);
                                   });
                                 })
                                 .cost([](Word, In<Word>, InOut<Word> node) {
                                   return Cost{4.0 * static_cast<double>(node.size()),
                                               12.0 * static_cast<double>(node.size())};
                                 });
  return kernel;
}

struct Node {
  Word salt;
  std::uint64_t place;                 ///< its device is this modulo their number
  std::vector<std::uint32_t> parents;  ///< in the layer before
};

struct Graph {
  std::vector<std::vector<Node>> layers;
  std::uint64_t edges = 0;
};

Graph draw(const Values& values) {
  const auto width = static_cast<std::uint64_t>(values.number("width"));
  const auto degree = static_cast<std::uint64_t>(values.number("degree"));
  const auto seed = static_cast<std::uint64_t>(values.number("seed"));
  std::uint64_t drawn = 0;
  const auto next = [&] { return mlp::random_bits(seed, drawn++); };
  Graph graph;
  for (std::int64_t l = 0; l < values.number("layers"); ++l) {
    graph.layers.emplace_back();
    for (std::uint64_t w = 0; w < width; ++w) {
      Node node{static_cast<Word>(next()), next(), {}};
      const std::uint64_t parents = l == 0 ? 0 : 1 + next() % degree;
      for (std::uint64_t p = 0; p < parents; ++p)
        node.parents.push_back(static_cast<std::uint32_t>(next() % width));
      graph.edges += node.parents.size();
      graph.layers.back().push_back(std::move(node));
    }
  }
  return graph;
}

std::vector<std::vector<Word>> reference(const Graph& graph, std::size_t elements) {
  std::vector<std::vector<Word>> before, now;
  for (const auto& layer : graph.layers) {
    now.clear();
    for (const Node& node : layer) {
      std::vector<Word> values(elements);
      for (std::size_t i = 0; i < elements; ++i) {
        values[i] = mixed(static_cast<Word>(i), node.salt);
        for (const std::uint32_t parent : node.parents)
          values[i] += mixed(before[parent][i], node.salt);
      }
      now.push_back(std::move(values));
    }
    before = now;
  }
  return now;
}

Result run(const Context& context) {
  const Graph graph = draw(context.values);
  const std::int64_t elements = context.values.number("elements");
  std::vector<Tensor<Word>> before, now;
  Counted ops;
  Result result;
  result.seconds = timed(context.runtime, [&] {
    for (const auto& layer : graph.layers) {
      now.clear();
      for (const Node& node : layer) {
        const Device& device = context.devices[node.place % context.devices.size()];
        now.push_back(device.tensor<Word>({elements}));
        ops.submit(device, begin_node(), node.salt, out(now.back()));
        for (const std::uint32_t parent : node.parents)
          ops.submit(device, add_parent(), node.salt, in(before[parent]), inout(now.back()));
      }
      before = now;
    }
    for (const auto& node : now) node.future().wait();
  });
  const auto size = static_cast<double>(elements);
  result.flops = size * (3.0 * static_cast<double>(ops.ops() - graph.edges) +
                         4.0 * static_cast<double>(graph.edges));
  result.bytes = 4 * size * static_cast<double>(graph.edges);
  result.ops = ops.ops();
  result.check = checked(context.runtime, "the last layer against a serial run", [&] {
    const auto expected = reference(graph, static_cast<std::size_t>(elements));
    for (std::size_t w = 0; w < now.size(); ++w) {
      const auto host = now[w].to_host();
      for (std::size_t i = 0; i < host.size(); ++i)
        expect_near("node", i, host[i], expected[w][i], 0);
    }
  });
  return result;
}

}  // namespace

Workload layers_workload() {
  return {
      "layers",
      "a random layered graph, drawn from a seed, nodes on random devices",
      {number("layers", 8, 1, 100'000, "layers"), number("width", 8, 1, 10'000, "nodes of a layer"),
       number("degree", 3, 1, 64, "a node reads 1 to degree nodes"),
       number("elements", 4096, 1, 1 << 28, "32-bit words of a node"),
       number("seed", 1, 0, 1'000'000'000, "what is drawn")},
      {begin_node().code(), add_parent().code()},
      run};
}

}  // namespace weft::workloads
