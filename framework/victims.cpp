#include "framework/victims.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "framework/next_uses.hpp"

namespace weft {
namespace {

// Next uses are about equally far from the last eighth of the way to the farthest on.
constexpr std::uint64_t kZone = 8;

using Candidates = std::vector<EvictionCandidate>;

std::uint64_t farthest_of(const Candidates& candidates, std::uint64_t now) {
  std::uint64_t farthest = now;
  for (const EvictionCandidate& each : candidates)
    if (each.next_use != NextUses::kNever) farthest = std::max(farthest, each.next_use);
  return farthest;
}

// Where that zone begins.
std::uint64_t zone_of(const Candidates& candidates, std::uint64_t now) {
  const std::uint64_t farthest = farthest_of(candidates, now);
  return farthest - (farthest - now) / kZone;
}

// All candidates, the one that goes first in front.
std::vector<std::size_t> ordered(const Candidates& candidates, std::uint64_t now) {
  const std::uint64_t zone = zone_of(candidates, now);
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
  return order;
}

}  // namespace

std::vector<std::size_t> choose_victims(const Candidates& candidates, std::size_t wanted,
                                        std::uint64_t now) {
  std::vector<std::size_t> order = ordered(candidates, now);
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

namespace {

// In order, of those that `may` go and no op under way uses, as many as `most` bytes allow.
template <class May>
std::vector<std::size_t> choose_idle(const Candidates& candidates, std::size_t most,
                                     std::uint64_t now, const May& may) {
  std::vector<std::size_t> chosen;
  for (const std::size_t i : ordered(candidates, now)) {
    const EvictionCandidate& each = candidates[i];
    if (each.is_busy || each.bytes > most || !may(each)) continue;
    most -= each.bytes;
    chosen.push_back(i);
  }
  return chosen;
}

}  // namespace

std::vector<std::size_t> choose_spare(const Candidates& candidates, std::size_t most,
                                      std::uint64_t now) {
  const std::uint64_t zone = zone_of(candidates, now);
  return choose_idle(candidates, most, now, [&](const EvictionCandidate& each) {
    const bool is_unused = each.is_dead || each.next_use == NextUses::kNever;
    return is_unused || (each.is_clean && each.next_use >= zone);
  });
}

std::vector<std::size_t> choose_far(const Candidates& candidates, std::size_t most,
                                    std::uint64_t now) {
  if (farthest_of(candidates, now) - now < 2 * candidates.size()) return {};
  const std::uint64_t zone = zone_of(candidates, now);
  return choose_idle(candidates, most, now,
                     [&](const EvictionCandidate& each) { return each.next_use >= zone; });
}

}  // namespace weft
