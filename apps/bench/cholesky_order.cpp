#include "apps/bench/cholesky_order.hpp"

#include <algorithm>

namespace weft::bench {
namespace {

using StepKind = CholeskyStep::Kind;
using VisitStep = std::function<void(const CholeskyStep&)>;

void visit_update(std::int64_t i, std::int64_t j, std::int64_t k, const VisitStep& visit) {
  visit({i == j ? StepKind::Square : StepKind::Product, i, j, k});
}

// Column k applied to the columns [first, last).
void apply_column(std::int64_t count, std::int64_t k, std::int64_t first, std::int64_t last,
                  const VisitStep& visit) {
  for (std::int64_t i = first; i < count; ++i)
    for (std::int64_t j = first; j < std::min(i + 1, last); ++j) visit_update(i, j, k, visit);
}

void factor_panel(std::int64_t count, std::int64_t first, std::int64_t last,
                  const VisitStep& visit) {
  visit({StepKind::Factor, first, first, first});
  for (std::int64_t k = first; k < last; ++k) {
    for (std::int64_t i = k + 1; i < count; ++i) visit({StepKind::Solve, i, k, k});
    const std::int64_t next = k + 1;
    if (next == last) break;
    visit_update(next, next, k, visit);
    visit({StepKind::Factor, next, next, next});
    for (std::int64_t i = next + 1; i < count; ++i) visit_update(i, next, k, visit);
    apply_column(count, k, next + 1, last, visit);
  }
}

}  // namespace

void for_each_step(std::int64_t count, std::int64_t panel, const VisitStep& visit) {
  panel = std::max<std::int64_t>(1, panel);
  for (std::int64_t first = 0; first < count; first += panel) {
    const std::int64_t last = std::min(count, first + panel);
    for (std::int64_t k = 0; k < first; ++k) apply_column(count, k, first, last, visit);
    factor_panel(count, first, last, visit);
  }
}

std::int64_t panel_columns(std::int64_t count, std::size_t tile_bytes, std::size_t budget) {
  const auto tiles = static_cast<double>(count), bytes = static_cast<double>(tile_bytes);
  const auto room = static_cast<double>(budget);
  if (tiles * (tiles + 1) / 2 * bytes <= 0.9 * room) return std::max<std::int64_t>(1, count);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(room / 2 / (tiles * bytes)), 1,
                                  std::max<std::int64_t>(1, count));
}

}  // namespace weft::bench
