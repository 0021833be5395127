#include "framework/plan_graph.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "framework/kernel_code.hpp"

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

namespace {

// So many of the newest are looked at.
constexpr std::size_t kFewest = 8;

// A node that fails with another which reads the same slot before the plan has written it need not
// hear of what made the slot valid.
class EntryTrimmer {
 public:
  explicit EntryTrimmer(PlanGraph& graph) : graph_(graph), holders_(graph.slots.size()) {}

  void look_at(std::uint32_t n, const Ancestors& data) {
    std::erase_if(graph_.nodes[n].entries, [&](const PlanGraph::Entry& entry) {
      if (entry.slot == PlanGraph::kNone) return false;
      auto& holders = holders_[entry.slot];
      const auto from = holders.size() > kFewest ? holders.end() - kFewest : holders.begin();
      if (std::any_of(from, holders.end(), [&](std::uint32_t h) { return data.has(n, h, n); }))
        return true;
      holders.push_back(n);
      return false;
    });
  }

 private:
  PlanGraph& graph_;
  std::vector<std::vector<std::uint32_t>> holders_;  // by slot
};

// Who waits for a reader of a tensor waits for the readers before it.
class ReaderTrimmer {
 public:
  explicit ReaderTrimmer(PlanGraph& graph)
      : graph_(graph), readers_(graph.tensors.size()), implied_(graph.tensors.size()) {}

  void look_at(std::uint32_t n, const Ancestors& any) {
    const PlanGraph::Node& node = graph_.nodes[n];
    const bool is_copy = node.code && node.code->is_copy;
    for (const PlanGraph::Argument& argument : node.arguments) {
      const std::uint32_t tensor = graph_.slots[argument.slot].tensor;
      if (argument.access == Access::In) {
        add_reader(tensor, n, any);
      } else if (!is_copy) {
        readers_[tensor].clear();
        implied_[tensor].clear();
      }
    }
  }

  void take_out() {
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      auto& left = graph_.tensors[t].readers;
      const std::vector<std::uint32_t> all = left;
      for (const auto& [reader, by] : implied_[t])
        if (std::binary_search(all.begin(), all.end(), by)) std::erase(left, reader);
    }
  }

 private:
  void add_reader(std::uint32_t tensor, std::uint32_t n, const Ancestors& any) {
    auto& readers = readers_[tensor];
    if (!readers.empty() && readers.back() == n) return;
    for (std::size_t i = readers.size(), looked = 0; i-- > 0 && looked < kFewest; ++looked) {
      if (!any.has(n, readers[i], n)) continue;
      implied_[tensor].emplace_back(readers[i], n);
      readers.erase(readers.begin() + static_cast<std::ptrdiff_t>(i));
    }
    readers.push_back(n);
  }

  PlanGraph& graph_;
  std::vector<std::vector<std::uint32_t>> readers_;                            // by tensor
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> implied_;  // by whom
};

}  // namespace

void PlanGraph::trim() {
  Ancestors any, data;
  EntryTrimmer entries(*this);
  ReaderTrimmer readers(*this);
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
    entries.look_at(n, data);
    readers.look_at(n, any);
  }
  readers.take_out();
}

std::size_t PlanGraph::edge_count() const {
  std::size_t count = 0;
  for (const Node& node : nodes) count += node.edges.size();
  return count;
}

}  // namespace weft
