#include "framework/plan_graph.hpp"

#include <algorithm>

namespace weft {
namespace {

// Ancestors as bits, as far back as this many nodes: enough for a step of a program, and linear in
// its length.
constexpr std::uint32_t kWindow = 4096;

// One row of bits per node of the window, addressed by the node's number.
class Ancestors {
 public:
  explicit Ancestors(std::size_t nodes)
      : window_(std::min<std::size_t>(kWindow, (nodes + 63) / 64 * 64)),
        words_(window_ / 64),
        bits_(window_ * words_) {}

  // Node `n` comes next: its row starts empty, and nobody remembers the node it replaces.
  void begin(std::uint32_t n) {
    std::fill_n(row(n), words_, 0);
    if (n >= window_)
      for (std::size_t r = 0; r < window_; ++r) clear(bits_.data() + r * words_, n);
  }
  void add(std::uint32_t n, std::uint32_t producer) {
    if (n - producer >= window_) return;
    std::uint64_t* into = row(n);
    const std::uint64_t* from = row(producer);
    for (std::size_t w = 0; w < words_; ++w) into[w] |= from[w];
    into[producer % window_ / 64] |= std::uint64_t{1} << (producer % 64);
  }
  [[nodiscard]] bool has(std::uint32_t n, std::uint32_t ancestor, std::uint32_t newest) const {
    if (newest - ancestor >= window_ || newest - n >= window_) return false;
    return row(n)[ancestor % window_ / 64] >> (ancestor % 64) & 1;
  }

 private:
  std::uint64_t* row(std::uint32_t n) { return bits_.data() + n % window_ * words_; }
  [[nodiscard]] const std::uint64_t* row(std::uint32_t n) const {
    return bits_.data() + n % window_ * words_;
  }
  void clear(std::uint64_t* at, std::uint32_t n) const {
    at[n % window_ / 64] &= ~(std::uint64_t{1} << (n % 64));
  }

  std::size_t window_, words_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace

void PlanGraph::trim() {
  Ancestors any(nodes.size()), data(nodes.size());
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
