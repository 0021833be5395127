#include "framework/placement.hpp"

#include <algorithm>

#include "framework/fabric.hpp"

namespace weft {
namespace {

template <class Less>
std::size_t least(std::span<const PlacementOption> options, Less less) {
  return static_cast<std::size_t>(std::min_element(options.begin(), options.end(), less) -
                                  options.begin());
}

}  // namespace

std::size_t FixedPlacement::choose(std::span<const PlacementOption> options) {
  const auto found = std::find_if(options.begin(), options.end(), [&](const PlacementOption& each) {
    return each.place->name == device_;
  });
  return found == options.end() ? 0 : static_cast<std::size_t>(found - options.begin());
}

std::size_t RoundRobinPlacement::choose(std::span<const PlacementOption> options) {
  return next_.fetch_add(1, std::memory_order_relaxed) % options.size();
}

std::size_t NearestPlacement::choose(std::span<const PlacementOption> options) {
  return least(options, [](const PlacementOption& a, const PlacementOption& b) {
    return a.missing_bytes != b.missing_bytes ? a.missing_bytes < b.missing_bytes
                                              : a.finish() < b.finish();
  });
}

std::size_t EarliestFinishPlacement::choose(std::span<const PlacementOption> options) {
  return least(options, [](const PlacementOption& a, const PlacementOption& b) {
    return a.finish() < b.finish();
  });
}

// A way through the gate's actor and a place in a plan take some ten microseconds.
bool AutoPlacement::lets_wait(std::span<const PlacementOption> options) {
  constexpr double kWorthPlanning = 100e-6;
  if (options.size() < 2) return false;
  const auto shortest = least(
      options, [](const PlacementOption& a, const PlacementOption& b) { return a.run < b.run; });
  return options[shortest].run >= kWorthPlanning;
}

std::unique_ptr<PlacementPolicy> make_placement(const std::string& text) {
  const std::string fixed = "fixed:";
  if (text == "auto") return std::make_unique<AutoPlacement>();
  if (text == "earliest_finish") return std::make_unique<EarliestFinishPlacement>();
  if (text == "heft") return std::make_unique<HeftPlacement>();
  if (text == "late") return std::make_unique<LatePlacement>();
  if (text == "nearest") return std::make_unique<NearestPlacement>();
  if (text == "round_robin") return std::make_unique<RoundRobinPlacement>();
  if (text.starts_with(fixed) && text.size() > fixed.size())
    return std::make_unique<FixedPlacement>(text.substr(fixed.size()));
  throw DeviceError(
      "placement \"" + text +
      "\": wanted auto, earliest_finish, heft, late, nearest, round_robin or fixed:DEVICE");
}

}  // namespace weft
