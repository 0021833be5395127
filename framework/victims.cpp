#include "framework/victims.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "framework/next_uses.hpp"

namespace weft {
namespace {

// Next uses are about equally far from the last eighth of the way to the farthest on.
constexpr std::uint64_t kZone = 8;

}  // namespace

std::vector<std::size_t> choose_victims(const std::vector<EvictionCandidate>& candidates,
                                        std::size_t wanted, std::uint64_t now) {
  std::uint64_t farthest = now;
  for (const EvictionCandidate& each : candidates)
    if (each.next_use != NextUses::kNever) farthest = std::max(farthest, each.next_use);
  const std::uint64_t zone = farthest - (farthest - now) / kZone;

  // The lowest goes first.
  auto rank = [&](std::size_t i) {
    const EvictionCandidate& each = candidates[i];
    if (each.is_dead) return std::make_tuple(0, each.is_busy, each.last_use);
    if (each.next_use == NextUses::kNever) return std::make_tuple(1, each.is_busy, each.last_use);
    const std::uint64_t nearness = NextUses::kNever - each.next_use;
    if (each.next_use >= zone) return std::make_tuple(2, each.is_busy, nearness);
    return std::make_tuple(3, false, nearness);
  };
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto ra = rank(a), rb = rank(b);
    if (ra != rb) return ra < rb;
    return candidates[a].is_clean && !candidates[b].is_clean;
  });
  std::size_t sum = 0, count = 0;
  while (count < order.size() && sum < wanted) sum += candidates[order[count++]].bytes;
  order.resize(count);
  // What came early may be superfluous beside a large one that came late.
  for (std::size_t i = count; i-- > 0;)
    if (sum - candidates[order[i]].bytes >= wanted) {
      sum -= candidates[order[i]].bytes;
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(i));
    }
  return order;
}

}  // namespace weft
