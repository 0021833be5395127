#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::bench {

/// A graph of ops by pattern: which ops an op follows, and which data it reads and writes.
///
/// Nothing is stored per op: one block of the pattern is kept and repeats, so that the memory that
/// is measured is the runtime's and not the graph's. Ops are numbered in an order in which they may
/// run one at a time.
///
/// Patterns: `chain` (each op updates one datum), `wide` (independent ops without data),
/// `fork-join` (an op, `width` ops behind it, one op behind those, and so on), `nocomm` (columns
/// that do not meet), and over `width` columns by steps: `stencil` (an op follows its own column
/// and both neighbours), `fft` (partners at distance 1, 2, 4 …), `random` (up to five of the
/// nearest, its own always). Those write two fields in turn.
class OpGraph {
 public:
  static constexpr std::uint32_t kNoData = 0xffffffffu;
  static constexpr std::uint32_t kMaxReads = 8;

  /// `width` 0 takes the pattern's usual one. Throws `std::invalid_argument` naming what is wrong.
  OpGraph(const std::string& pattern, std::uint32_t width, std::uint32_t ops);

  /// All patterns.
  static const std::vector<std::string>& patterns();

  /// One op.
  class Node {
   public:
    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] std::uint32_t predecessor_count() const {
      std::uint32_t count = 0;
      for_each_predecessor([&](std::uint32_t) { ++count; });
      return count;
    }
    /// Calls `visit(op)` for each op it follows.
    template <class Visit>
    void for_each_predecessor(Visit&& visit) const {
      for (auto i = graph_->back_begin_[at_]; i < graph_->back_begin_[at_ + 1]; ++i)
        if (graph_->back_[i] <= number_) visit(number_ - graph_->back_[i]);
    }
    /// Calls `visit(op)` for each op that follows it.
    template <class Visit>
    void for_each_successor(Visit&& visit) const {
      for (auto i = graph_->ahead_begin_[at_]; i < graph_->ahead_begin_[at_ + 1]; ++i)
        if (graph_->ahead_[i] < graph_->ops_ - number_) visit(number_ + graph_->ahead_[i]);
    }
    /// Calls `visit(datum)` for each datum it only reads.
    template <class Visit>
    void for_each_read(Visit&& visit) const {
      if (is_update()) return;
      for (auto i = graph_->back_begin_[at_]; i < graph_->back_begin_[at_ + 1]; ++i)
        if (graph_->back_[i] <= number_) visit(graph_->read_[i]);
    }
    /// The datum it writes, or `kNoData`.
    [[nodiscard]] std::uint32_t written() const { return graph_->written_[at_]; }
    /// It also reads what it writes.
    [[nodiscard]] bool is_update() const { return graph_->updates_; }

   private:
    friend class OpGraph;
    Node(const OpGraph& graph, std::uint32_t number)
        : graph_(&graph), number_(number), at_(number % graph.block_) {}
    const OpGraph* graph_;
    std::uint32_t number_, at_;
  };

  [[nodiscard]] Node node(std::uint32_t number) const { return {*this, number}; }
  [[nodiscard]] const std::string& pattern() const { return pattern_; }
  [[nodiscard]] std::uint32_t ops() const { return ops_; }
  [[nodiscard]] std::uint32_t width() const { return width_; }
  /// Number of data.
  [[nodiscard]] std::uint32_t data() const { return data_; }

 private:
  // One block of the pattern as if blocks came before and behind it.
  void add_op(std::uint32_t written, const std::vector<std::uint32_t>& back);
  void make_fork_join();
  void make_columns();
  void finish();

  std::string pattern_;
  std::uint32_t width_ = 1, ops_ = 0, data_ = 0, block_ = 1;
  bool updates_ = false;
  std::vector<std::uint32_t> back_begin_{0}, back_;    // distances to the ops before
  std::vector<std::uint32_t> ahead_begin_{0}, ahead_;  // … and behind
  std::vector<std::uint32_t> read_;                    // datum of each distance in back_
  std::vector<std::uint32_t> written_;
};

}  // namespace weft::bench
