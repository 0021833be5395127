#include "framework/placement_window.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace weft {
namespace {

constexpr std::uint32_t kBefore = std::numeric_limits<std::uint32_t>::max();

// One value of a tensor: the one there is now, or what an op of the window makes of it.
struct Version {
  std::uint32_t tensor = 0;
  std::uint32_t writer = kBefore;
  std::vector<std::uint32_t> readers;
};

// What one op needs of others in the window.
struct Needs {
  std::vector<std::uint32_t> reads, writes;  // versions
  std::vector<std::uint32_t> before;         // ops that only must have ended
};

// Who waits for whom, as submission will work it out.
class WindowGraph {
 public:
  explicit WindowGraph(const PlacementWindow& window) : needs(window.ops.size()) {
    std::vector<std::uint32_t> newest(window.tensors.size());
    for (std::uint32_t t = 0; t < window.tensors.size(); ++t) {
      newest[t] = t;
      versions.push_back({t, kBefore, {}});
    }
    for (std::uint32_t op = 0; op < window.ops.size(); ++op) {
      Needs& need = needs[op];
      need.before = window.ops[op].after;
      for (const auto& argument : window.ops[op].arguments) {
        Version& value = versions[newest[argument.tensor]];
        if (argument.reads) need.reads.push_back(newest[argument.tensor]);
        if (argument.writes) {
          if (value.writer != kBefore && !argument.reads) need.before.push_back(value.writer);
          for (const std::uint32_t reader : value.readers)
            if (reader != op) need.before.push_back(reader);
        } else {
          value.readers.push_back(op);
        }
      }
      for (const auto& argument : window.ops[op].arguments) {
        if (!argument.writes) continue;
        newest[argument.tensor] = static_cast<std::uint32_t>(versions.size());
        need.writes.push_back(newest[argument.tensor]);
        versions.push_back({argument.tensor, op, {}});
      }
    }
  }

  std::vector<Version> versions;
  std::vector<Needs> needs;
};

double mean_of_finite(const std::vector<double>& values) {
  double sum = 0;
  std::size_t count = 0;
  for (const double value : values)
    if (std::isfinite(value)) {
      sum += value;
      ++count;
    }
  return count ? sum / static_cast<double>(count) : 0;
}

// The ops in an order that puts nothing before what it needs: the highest priority among all that
// waits for one, then the longest mean time to the end of that.
std::vector<std::uint32_t> order_of(const PlacementWindow& window, const WindowGraph& graph) {
  const double latency = mean_of_finite(window.latency);
  const double per_byte = mean_of_finite(window.seconds_per_byte);
  std::vector<double> rank(window.ops.size());
  std::vector<int> priority(window.ops.size());
  auto precedes = [&](std::uint32_t before, std::uint32_t op, double between) {
    rank[before] = std::max(rank[before], rank[op] + between);
    priority[before] = std::max(priority[before], priority[op]);
  };
  for (std::uint32_t op = 0; op < window.ops.size(); ++op) priority[op] = window.ops[op].priority;
  for (std::uint32_t op = static_cast<std::uint32_t>(window.ops.size()); op-- > 0;) {
    rank[op] += mean_of_finite(window.ops[op].run);
    for (const std::uint32_t read : graph.needs[op].reads) {
      const Version& value = graph.versions[read];
      if (value.writer == kBefore) continue;
      const auto bytes = static_cast<double>(window.tensors[value.tensor].bytes);
      precedes(value.writer, op, latency + bytes * per_byte);
    }
    for (const std::uint32_t before : graph.needs[op].before) precedes(before, op, 0);
  }
  std::vector<std::uint32_t> order(window.ops.size());
  std::iota(order.begin(), order.end(), 0);
  // Of equals the older, so that one which takes no time does not overtake what it needs.
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return priority[a] != priority[b] ? priority[a] > priority[b] : rank[a] > rank[b];
  });
  return order;
}

// What one of the ops that a device runs at a time is busy with, by time.
struct Lane {
  struct Span {
    double begin, end;
  };
  double free_at = 0;
  std::vector<Span> spans;

  // When an op of `seconds` can begin, not before `earliest`.
  [[nodiscard]] double find(double earliest, double seconds) const {
    double begin = std::max(earliest, free_at);
    for (const Span& span : spans) {
      if (begin + seconds <= span.begin) break;
      begin = std::max(begin, span.end);
    }
    return begin;
  }
  void take(double begin, double seconds) {
    const auto behind = std::find_if(spans.begin(), spans.end(),
                                     [&](const Span& span) { return span.begin >= begin; });
    spans.insert(behind, {begin, begin + seconds});
  }
};

// Where each op runs, in the order in which they were placed, and when all have ended.
struct Schedule {
  std::vector<PlannedOp> ops;
  double end = 0;
};

// Each op goes where it ends first; of `fixed` those that are not kFree go to that device.
constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();

Schedule schedule(const PlacementWindow& window, const WindowGraph& graph,
                  const std::vector<std::uint32_t>& order,
                  const std::vector<std::uint32_t>& fixed) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<std::vector<Lane>> lanes;
  for (const auto& device : window.devices) {
    lanes.emplace_back();
    for (const double free_at : device.free_at) lanes.back().push_back({free_at, {}});
  }
  std::vector<std::vector<double>> there(graph.versions.size());  // by device
  for (std::size_t t = 0; t < window.tensors.size(); ++t) there[t] = window.tensors[t].there;
  std::vector<double> end(window.ops.size(), kNever);
  Schedule made;
  for (const std::uint32_t op : order) {
    const Needs& need = graph.needs[op];
    double ordered = 0;
    for (const std::uint32_t before : need.before) ordered = std::max(ordered, end[before]);
    PlannedOp best{op, 0, kNever};
    double best_end = kNever;
    Lane* best_lane = nullptr;
    for (std::uint32_t d = 0; d < window.devices.size(); ++d) {
      const double seconds = window.ops[op].run[d];
      if (!std::isfinite(seconds) || (fixed[op] != kFree && fixed[op] != d)) continue;
      double earliest = ordered;
      for (const std::uint32_t read : need.reads)
        earliest = std::max(earliest, there[read].empty() ? kNever : there[read][d]);
      if (!std::isfinite(earliest)) continue;
      for (Lane& lane : lanes[d]) {
        const double begin = lane.find(earliest, seconds);
        if (begin + seconds >= best_end) continue;
        best = {op, d, begin};
        best_end = begin + seconds;
        best_lane = &lane;
      }
    }
    if (!best_lane) continue;
    best_lane->take(best.begin, best_end - best.begin);
    end[op] = best_end;
    made.end = std::max(made.end, best_end);
    for (const std::uint32_t written : need.writes) {
      const std::size_t bytes = window.tensors[graph.versions[written].tensor].bytes;
      for (std::uint32_t d = 0; d < window.devices.size(); ++d)
        there[written].push_back(
            best_end + (d == best.device ? 0 : window.copy_seconds(best.device, d, bytes)));
    }
    made.ops.push_back(best);
  }
  return made;
}

// Other devices tried for single ops: a plan's time goes with it.
constexpr std::size_t kMostTries = 32;
constexpr std::size_t kMostOpsTried = 512;

// One op after the other is tried elsewhere, and left there if all ends sooner then.
void improve(Schedule& best, const PlacementWindow& window, const WindowGraph& graph,
             const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> fixed(window.ops.size(), kFree);
  std::vector<std::uint32_t> device(window.ops.size(), kFree);
  for (const PlannedOp& planned : best.ops) device[planned.op] = planned.device;
  const std::size_t most = std::min(kMostTries, kMostOpsTried / window.ops.size());
  std::size_t tries = 0;
  for (const std::uint32_t op : order) {
    for (std::uint32_t d = 0; d < window.devices.size() && tries < most; ++d) {
      if (d == device[op] || !std::isfinite(window.ops[op].run[d])) continue;
      ++tries;
      const std::uint32_t before = std::exchange(fixed[op], d);
      Schedule other = schedule(window, graph, order, fixed);
      if (other.ops.size() < best.ops.size() || other.end >= best.end) {
        fixed[op] = before;
        continue;
      }
      best = std::move(other);
      for (const PlannedOp& planned : best.ops) device[planned.op] = planned.device;
    }
    fixed[op] = device[op];
  }
}

// Whether it waits for nothing of the window, and nothing of the window for it.
bool stands_apart(const PlacementWindow& window, const WindowGraph& graph, std::uint32_t op) {
  const Needs& need = graph.needs[op];
  if (!need.before.empty()) return false;
  for (const std::uint32_t read : need.reads)
    if (graph.versions[read].writer != kBefore) return false;
  for (std::uint32_t other = 0; other < window.ops.size(); ++other) {
    const Needs& others = graph.needs[other];
    if (std::find(others.before.begin(), others.before.end(), op) != others.before.end())
      return false;
    for (const std::uint32_t read : others.reads)
      if (graph.versions[read].writer == op) return false;
  }
  return true;
}

// In a window of few ops a device that takes as long for one as others for all of these comes last;
// in all that waits there is room for some.
void use_slow_devices(Schedule& best, const PlacementWindow& window, const WindowGraph& graph,
                      const std::vector<std::uint32_t>& order) {
  constexpr double kInTime = 0.9;  // what is known of the others may be wrong
  if (window.waiting <= window.ops.size()) return;
  const double all = kInTime * best.end * static_cast<double>(window.waiting) /
                     static_cast<double>(window.ops.size());
  std::vector<std::uint32_t> fixed(window.ops.size(), kFree);
  for (const PlannedOp& planned : best.ops) fixed[planned.op] = planned.device;
  std::vector<bool> is_used(window.ops.size());
  bool is_any_used = false;
  for (std::uint32_t d = 0; d < window.devices.size(); ++d) {
    const auto has = [&](const PlannedOp& planned) { return planned.device == d; };
    if (std::any_of(best.ops.begin(), best.ops.end(), has)) continue;
    for (const double free_at : window.devices[d].free_at) {
      const auto found = std::find_if(order.rbegin(), order.rend(), [&](std::uint32_t op) {
        double begin = free_at;
        for (const std::uint32_t read : graph.needs[op].reads)
          if (graph.versions[read].writer == kBefore)
            begin = std::max(begin, window.tensors[graph.versions[read].tensor].there[d]);
        return !is_used[op] && begin + window.ops[op].run[d] <= all &&
               stands_apart(window, graph, op);
      });
      if (found == order.rend()) break;
      fixed[*found] = d;
      is_used[*found] = true;
      is_any_used = true;
    }
  }
  if (!is_any_used) return;
  Schedule other = schedule(window, graph, order, fixed);
  if (other.ops.size() == best.ops.size()) best = std::move(other);
}

}  // namespace

std::vector<PlannedOp> plan_by_heft(const PlacementWindow& window) {
  const WindowGraph graph(window);
  const std::vector<std::uint32_t> order = order_of(window, graph);
  Schedule made =
      schedule(window, graph, order, std::vector<std::uint32_t>(window.ops.size(), kFree));
  if (!window.ops.empty()) {
    improve(made, window, graph, order);
    use_slow_devices(made, window, graph, order);
  }
  std::stable_sort(made.ops.begin(), made.ops.end(),
                   [](const PlannedOp& a, const PlannedOp& b) { return a.begin < b.begin; });
  return std::move(made.ops);
}

}  // namespace weft
