#include "framework/plan_graph.hpp"

#include <algorithm>
#include <array>

namespace weft {
namespace {

// Ancestors as bits, as far back as this many nodes: redundant waits are for what is near.
constexpr std::uint32_t kWindow = 1024;

// One row of bits per node of the window. In the row of node n, the bit of a number stands for the
// youngest node of that number, modulo the window, that is not younger than n.
class Ancestors {
 public:
  Ancestors() : bits_(kWindow * kWords) {}

  void begin(std::uint32_t n) { std::fill_n(row(n), kWords, 0); }
  void add(std::uint32_t n, std::uint32_t producer) {
    if (n - producer >= kWindow) return;
    std::array<std::uint64_t, kWords> from;
    std::copy_n(row(producer), kWords, from.begin());
    // What is too far back for `n` has the bits of those between the two.
    for (std::uint32_t between = producer + 1; between <= n; ++between)
      from[word(between)] &= ~bit(between);
    from[word(producer)] |= bit(producer);
    std::uint64_t* into = row(n);
    for (std::size_t w = 0; w < kWords; ++w) into[w] |= from[w];
  }
  /// Whether `ancestor` comes before `n`; false also if it is too far back to know.
  [[nodiscard]] bool has(std::uint32_t n, std::uint32_t ancestor, std::uint32_t newest) const {
    if (n - ancestor >= kWindow || newest - n >= kWindow) return false;
    return bits_[n % kWindow * kWords + word(ancestor)] & bit(ancestor);
  }

 private:
  static constexpr std::size_t kWords = kWindow / 64;
  static std::size_t word(std::uint32_t n) { return n % kWindow / 64; }
  static std::uint64_t bit(std::uint32_t n) { return std::uint64_t{1} << (n % 64); }
  std::uint64_t* row(std::uint32_t n) { return bits_.data() + n % kWindow * kWords; }

  std::vector<std::uint64_t> bits_;
};

}  // namespace

void PlanGraph::trim() {
  Ancestors any, data;
  waits_recorded = edge_count();
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    any.begin(n);
    data.begin(n);
    auto& edges = nodes[n].edges;
    const auto is_implied = [&](const Edge& edge) {
      if (edge.until_done) return false;
      return std::any_of(edges.begin(), edges.end(), [&](const Edge& other) {
        if (other.producer <= edge.producer) return false;  // a way leads forward
        if (edge.order_only) return any.has(other.producer, edge.producer, n);
        return !other.order_only && data.has(other.producer, edge.producer, n);
      });
    };
    std::vector<Edge> left;
    for (const Edge& edge : edges)
      if (!is_implied(edge)) left.push_back(edge);
    edges = std::move(left);
    for (const Edge& edge : edges) {
      any.add(n, edge.producer);
      if (edge.order_only) continue;
      data.add(n, edge.producer);
      nodes[edge.producer].is_sink = false;
    }
  }
}

std::size_t PlanGraph::edge_count() const {
  std::size_t count = 0;
  for (const Node& node : nodes) count += node.edges.size();
  return count;
}

}  // namespace weft
