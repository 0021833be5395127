#include "apps/bench/graph.hpp"

#include <algorithm>
#include <stdexcept>

namespace weft::bench {
namespace {

constexpr std::uint32_t kFields = 2;        // copies of a column's datum, written in turn
constexpr std::uint32_t kRandomSteps = 64;  // steps before the random pattern repeats
constexpr std::uint32_t kMaxWidth = 4096;

std::uint32_t usual_width(const std::string& pattern) {
  if (pattern == "chain") return 1;
  return pattern == "fork-join" ? 4 : 16;
}

// Columns of the step before that column `x` follows, in range or not.
std::vector<std::int64_t> followed(const std::string& pattern, std::int64_t x, std::uint32_t step,
                                   std::uint32_t levels, std::uint64_t& random) {
  if (pattern == "nocomm") return {x};
  if (pattern == "stencil") return {x - 1, x, x + 1};
  if (pattern == "fft") {
    const std::int64_t distance = std::int64_t{1} << (step % levels);
    return {x - distance, x, x + distance};
  }
  std::vector<std::int64_t> columns;
  for (std::int64_t d = -2; d <= 2; ++d) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    if (d == 0 || (random >> 33) % 2) columns.push_back(x + d);
  }
  return columns;
}

}  // namespace

const std::vector<std::string>& OpGraph::patterns() {
  static const std::vector<std::string> all{"chain", "wide",   "fork-join", "stencil",
                                            "fft",   "random", "nocomm"};
  return all;
}

OpGraph::OpGraph(const std::string& pattern, std::uint32_t width, std::uint32_t ops)
    : pattern_(pattern), width_(width ? width : usual_width(pattern)), ops_(ops) {
  const auto& known = patterns();
  if (std::find(known.begin(), known.end(), pattern) == known.end()) {
    std::string names;
    for (const auto& name : known) names += (names.empty() ? "" : ", ") + name;
    throw std::invalid_argument("graph \"" + pattern + "\": wanted one of " + names);
  }
  const std::uint32_t most = pattern == "fork-join" ? kMaxReads : kMaxWidth;
  if (width_ > most)
    throw std::invalid_argument("width " + std::to_string(width_) + " of graph " + pattern +
                                ": wanted 1 to " + std::to_string(most));
  if (ops == 0) throw std::invalid_argument("ops 0: a graph has at least one op");
  if (pattern == "chain") {
    width_ = data_ = 1;
    updates_ = true;
    add_op(0, {1});
  } else if (pattern == "wide") {
    add_op(kNoData, {});
  } else if (pattern == "fork-join") {
    make_fork_join();
  } else {
    make_columns();
  }
  finish();
}

void OpGraph::add_op(std::uint32_t written, const std::vector<std::uint32_t>& back) {
  written_.push_back(written);
  back_.insert(back_.end(), back.begin(), back.end());
  back_begin_.push_back(static_cast<std::uint32_t>(back_.size()));
}

void OpGraph::make_fork_join() {
  data_ = width_ + 2;  // tiles, what was forked, what was joined
  add_op(width_, {1});
  for (std::uint32_t tile = 0; tile < width_; ++tile) add_op(tile, {tile + 1});
  std::vector<std::uint32_t> tiles;
  for (std::uint32_t tile = width_; tile > 0; --tile) tiles.push_back(tile);
  add_op(width_ + 1, tiles);
}

void OpGraph::make_columns() {
  data_ = kFields * width_;
  std::uint32_t levels = 1;
  while ((1u << levels) < width_) ++levels;
  const std::uint32_t steps = pattern_ == "fft"      ? kFields * levels
                              : pattern_ == "random" ? kRandomSteps
                                                     : kFields;
  std::uint64_t random = 88172645463325252ull;
  for (std::uint32_t step = 0; step < steps; ++step)
    for (std::uint32_t x = 0; x < width_; ++x) {
      std::vector<std::uint32_t> back;
      for (std::int64_t y : followed(pattern_, x, step, levels, random))
        if (y >= 0 && y < width_) back.push_back(width_ + x - static_cast<std::uint32_t>(y));
      add_op(step % kFields * width_ + x, back);
    }
}

// What is read is what the ops before have written; who follows is whom they name.
void OpGraph::finish() {
  block_ = static_cast<std::uint32_t>(written_.size());
  std::vector<std::vector<std::uint32_t>> ahead(block_);
  for (std::uint32_t at = 0; at < block_; ++at)
    for (auto i = back_begin_[at]; i < back_begin_[at + 1]; ++i) {
      const std::uint32_t before = (at + block_ - back_[i] % block_) % block_;
      read_.push_back(written_[before]);
      ahead[before].push_back(back_[i]);
    }
  for (const auto& distances : ahead) {
    ahead_.insert(ahead_.end(), distances.begin(), distances.end());
    ahead_begin_.push_back(static_cast<std::uint32_t>(ahead_.size()));
  }
}

}  // namespace weft::bench
