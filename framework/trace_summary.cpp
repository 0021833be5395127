#include "framework/trace_summary.hpp"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

namespace weft {
namespace {

struct Interval {
  std::int64_t start, end;
};

double seconds(std::int64_t ns) {
  return 1e-9 * static_cast<double>(ns);
}

// Sorted, disjoint intervals that cover the same points.
std::vector<Interval> merge(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  std::vector<Interval> merged;
  for (const Interval& next : intervals) {
    if (!merged.empty() && next.start <= merged.back().end)
      merged.back().end = std::max(merged.back().end, next.end);
    else
      merged.push_back(next);
  }
  return merged;
}

std::int64_t length(const std::vector<Interval>& merged) {
  std::int64_t sum = 0;
  for (const Interval& interval : merged) sum += interval.end - interval.start;
  return sum;
}

std::int64_t common_length(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum +=
        std::max<std::int64_t>(0, std::min(a[i].end, b[j].end) - std::max(a[i].start, b[j].start));
    if (a[i].end < b[j].end)
      ++i;
    else
      ++j;
  }
  return sum;
}

bool is_device(TrackKind kind) {
  return kind == TrackKind::Socket || kind == TrackKind::Gpu;
}

// One op: when it ran, and the longest chain that ends with it.
struct Node {
  std::uint64_t op = 0;
  std::uint32_t track = 0;  // of its first span
  std::int64_t start = 0, end = 0;
  std::int64_t chain = 0;
  std::size_t before = kNone;
  std::vector<std::size_t> producers;
  static constexpr std::size_t kNone = ~std::size_t{0};
};

std::vector<Node> nodes_of(const TraceData& data) {
  std::vector<Node> nodes;
  std::unordered_map<std::uint64_t, std::size_t> index;
  index.reserve(data.spans.size());
  for (const auto& span : data.spans) {
    const auto [found, is_new] = index.try_emplace(span.op, nodes.size());
    if (is_new) {
      nodes.push_back({span.op, span.track, span.start_ns, span.end_ns, 0, Node::kNone, {}});
      continue;
    }
    Node& node = nodes[found->second];
    node.start = std::min(node.start, span.start_ns);
    node.end = std::max(node.end, span.end_ns);
  }
  for (const auto& cause : data.causes) {
    const auto op = index.find(cause.op), producer = index.find(cause.producer);
    if (op != index.end() && producer != index.end())
      nodes[op->second].producers.push_back(producer->second);
  }
  return nodes;
}

void add_critical_path(const TraceData& data, TraceSummary& summary) {
  std::vector<Node> nodes = nodes_of(data);
  std::vector<std::size_t> order(nodes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  // A producer ends before its consumer starts, so this order visits producers first; ids settle
  // what took no time.
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return nodes[a].start != nodes[b].start ? nodes[a].start < nodes[b].start
                                            : nodes[a].op < nodes[b].op;
  });
  std::size_t last = Node::kNone;
  for (std::size_t i : order) {
    Node& node = nodes[i];
    for (std::size_t p : node.producers)
      if (nodes[p].chain > node.chain || node.before == Node::kNone) {
        node.chain = std::max(node.chain, nodes[p].chain);
        node.before = p;
      }
    node.chain += node.end - node.start;
    if (last == Node::kNone || node.chain > nodes[last].chain) last = i;
  }
  if (last == Node::kNone) return;
  summary.critical_path_seconds = seconds(nodes[last].chain);
  for (std::size_t i = last; i != Node::kNone; i = nodes[i].before) {
    summary.critical_path.push_back(nodes[i].op);
    const std::string& actor = data.tracks[nodes[i].track].actor;
    auto& parts = summary.critical_actors;
    auto part = std::find_if(parts.begin(), parts.end(),
                             [&](const auto& known) { return known.actor == actor; });
    if (part == parts.end()) part = parts.insert(parts.end(), {actor, 0});
    part->seconds += seconds(nodes[i].end - nodes[i].start);
  }
  std::stable_sort(summary.critical_actors.begin(), summary.critical_actors.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  std::reverse(summary.critical_path.begin(), summary.critical_path.end());
  summary.ops = nodes.size();
}

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%5.1f %%", 100 * share);
  return text;
}

}  // namespace

TraceData between(const TraceData& data, std::int64_t from_ns, std::int64_t to_ns) {
  TraceData part;
  part.tracks = data.tracks;
  part.causes = data.causes;
  part.dropped = data.dropped;
  for (const auto& span : data.spans) {
    if (span.end_ns <= from_ns || span.start_ns >= to_ns) continue;
    part.spans.push_back(span);
    part.spans.back().start_ns = std::max(span.start_ns, from_ns);
    part.spans.back().end_ns = std::min(span.end_ns, to_ns);
  }
  for (const auto& submission : data.submissions)
    if (submission.at_ns >= from_ns && submission.at_ns < to_ns)
      part.submissions.push_back(submission);
  return part;
}

TraceSummary summarise(const TraceData& data) {
  TraceSummary summary;
  if (data.spans.empty()) return summary;
  std::vector<std::vector<Interval>> of_track(data.tracks.size());
  std::vector<std::uint64_t> bytes(data.tracks.size());
  std::vector<Interval> compute, transfer;
  std::int64_t first = data.spans.front().start_ns, last = data.spans.front().end_ns;
  for (const auto& span : data.spans) {
    const Interval interval{span.start_ns, span.end_ns};
    of_track[span.track].push_back(interval);
    bytes[span.track] += span.bytes;
    first = std::min(first, span.start_ns);
    last = std::max(last, span.end_ns);
    summary.failed += span.failed;
    const TrackKind kind = data.tracks[span.track].kind;
    if (kind == TrackKind::Link) {
      transfer.push_back(interval);
      summary.transfer_bytes += span.bytes;
    } else if (is_device(kind) && span.kind == SpanKind::Kernel) {
      compute.push_back(interval);
    }
  }
  summary.wall_seconds = seconds(last - first);
  const auto share = [&](double busy) {
    return summary.wall_seconds > 0 ? busy / summary.wall_seconds : 0;
  };

  std::vector<std::vector<Interval>> of_actor;
  for (std::size_t t = 0; t < data.tracks.size(); ++t) {
    const auto& track = data.tracks[t];
    if (track.kind == TrackKind::Submitter) continue;
    const auto merged = merge(of_track[t]);
    const double busy = seconds(length(merged));
    summary.lanes.push_back(
        {track.actor, track.lane, track.kind, busy, share(busy), of_track[t].size(), bytes[t]});
    summary.lower_bound_seconds = std::max(summary.lower_bound_seconds, busy);

    auto actor = std::find_if(summary.actors.begin(), summary.actors.end(),
                              [&](const auto& known) { return known.actor == track.actor; });
    if (actor == summary.actors.end()) {
      summary.actors.push_back({track.actor, track.kind, 0, 0, 0, 0, 0, 0});
      of_actor.emplace_back();
      actor = summary.actors.end() - 1;
    }
    ++actor->lanes;
    actor->load += share(busy);
    actor->spans += of_track[t].size();
    actor->bytes += bytes[t];
    auto& all = of_actor[static_cast<std::size_t>(actor - summary.actors.begin())];
    all.insert(all.end(), merged.begin(), merged.end());
  }
  for (std::size_t a = 0; a < summary.actors.size(); ++a) {
    auto& actor = summary.actors[a];
    actor.busy_seconds = seconds(length(merge(std::move(of_actor[a]))));
    actor.busy = share(actor.busy_seconds);
    actor.load /= actor.lanes;
  }

  const auto computes = merge(std::move(compute));
  const auto transfers = merge(std::move(transfer));
  const std::int64_t moved = length(transfers), hidden = common_length(transfers, computes);
  summary.compute_seconds = seconds(length(computes));
  summary.transfer_seconds = seconds(moved);
  summary.hidden_seconds = seconds(hidden);
  summary.exposed_seconds = seconds(moved - hidden);
  if (moved > 0) summary.hidden = static_cast<double>(hidden) / static_cast<double>(moved);
  add_critical_path(data, summary);
  summary.lower_bound_seconds =
      std::max(summary.lower_bound_seconds, summary.critical_path_seconds);
  return summary;
}

std::string describe(const TraceSummary& summary) {
  std::string text;
  char line[256];
  for (const auto& actor : summary.actors) {
    if (actor.spans == 0) continue;
    std::snprintf(line, sizeof line, "  %-10s busy %s of the time", actor.actor.c_str(),
                  percent(actor.busy).c_str());
    text += line;
    if (actor.kind == TrackKind::Link)
      std::snprintf(line, sizeof line, ", %.1f MB moved", 1e-6 * static_cast<double>(actor.bytes));
    else
      std::snprintf(line, sizeof line, ", %u lane%s at work %s", actor.lanes,
                    actor.lanes == 1 ? "" : "s", percent(actor.load).c_str());
    text += line;
    text += '\n';
  }
  if (summary.transfer_seconds > 0) {
    std::snprintf(
        line, sizeof line, "  transfer   %.3f s, %s of it hidden under compute, %.3f s exposed\n",
        summary.transfer_seconds, percent(summary.hidden).c_str(), summary.exposed_seconds);
    text += line;
  }
  std::snprintf(line, sizeof line,
                "  wall       %.3f s; critical path %.3f s, lower bound %.3f s\n",
                summary.wall_seconds, summary.critical_path_seconds, summary.lower_bound_seconds);
  text += line;
  return text;
}

}  // namespace weft
