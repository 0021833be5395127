#include "apps/experiment/timeline.hpp"

#include <algorithm>
#include <cmath>

namespace weft::experiment {
namespace {

constexpr double kPixels = 1000;  // bars closer than a pixel of this width are one

struct Interval {
  double start, end;
};

std::vector<Interval> merged(const std::vector<Timeline::Bar>& bars) {
  std::vector<Interval> intervals;
  for (const auto& bar : bars) {
    if (!intervals.empty() && bar.start <= intervals.back().end)
      intervals.back().end = std::max(intervals.back().end, bar.end);
    else
      intervals.push_back({bar.start, bar.end});
  }
  return intervals;
}

// Adds each interval's part of each bin, as a share of the bin.
std::vector<double> shares(const std::vector<Interval>& intervals, double seconds) {
  std::vector<double> bins(Timeline::kBins);
  const double width = seconds / static_cast<double>(Timeline::kBins);
  if (!(width > 0)) return bins;
  for (const Interval& interval : intervals) {
    const auto bin_of = [&](double at) {
      return std::min(static_cast<std::size_t>(std::max(at / width, 0.0)), Timeline::kBins - 1);
    };
    for (std::size_t bin = bin_of(interval.start); bin <= bin_of(interval.end); ++bin) {
      const double from = width * static_cast<double>(bin);
      bins[bin] +=
          std::max(0.0, std::min(interval.end, from + width) - std::max(interval.start, from)) /
          width;
    }
  }
  for (double& share : bins) share = std::min(1.0, std::round(1000 * share) / 1000);
  return bins;
}

std::uint32_t number_of(std::vector<std::string>& names, const std::string& name) {
  const auto number =
      static_cast<std::uint32_t>(std::find(names.begin(), names.end(), name) - names.begin());
  if (number == names.size()) names.push_back(name);
  return number;
}

std::vector<Timeline::Bar> thinned(const std::vector<Timeline::Bar>& bars, double pixel) {
  std::vector<Timeline::Bar> kept;
  for (const auto& bar : bars) {
    const bool is_wide = bar.end - bar.start > 3 * pixel;
    if (!is_wide && !kept.empty() && kept.back().name == bar.name &&
        bar.start - kept.back().end < pixel)
      kept.back().end = std::max(kept.back().end, bar.end);
    else if (is_wide || kept.empty() || bar.end - kept.back().end > pixel / 4)
      kept.push_back(bar);
  }
  return kept;
}

}  // namespace

Timeline timeline_of(const TraceData& data) {
  Timeline timeline;
  if (data.spans.empty()) return timeline;
  std::int64_t first = data.spans.front().start_ns, last = data.spans.front().end_ns;
  for (const auto& span : data.spans) {
    first = std::min(first, span.start_ns);
    last = std::max(last, span.end_ns);
  }
  timeline.seconds = 1e-9 * static_cast<double>(last - first);
  std::vector<std::vector<Timeline::Bar>> of_track(data.tracks.size());
  for (const auto& span : data.spans)
    of_track[span.track].push_back({1e-9 * static_cast<double>(span.start_ns - first),
                                    1e-9 * static_cast<double>(span.end_ns - first),
                                    number_of(timeline.names, span.name)});
  for (std::size_t t = 0; t < data.tracks.size(); ++t) {
    const auto& track = data.tracks[t];
    auto& bars = of_track[t];
    if (bars.empty() || track.kind == TrackKind::Submitter) continue;
    std::sort(bars.begin(), bars.end(),
              [](const auto& a, const auto& b) { return a.start < b.start; });
    const auto busy = merged(bars);
    Timeline::Lane lane{track.actor, track.lane, track.kind, 0, {}, {}};
    for (const Interval& interval : busy) lane.busy += interval.end - interval.start;
    if (timeline.seconds > 0) lane.busy /= timeline.seconds;
    if (track.kind == TrackKind::Link) lane.use = shares(busy, timeline.seconds);
    lane.bars = thinned(bars, timeline.seconds / kPixels);
    timeline.lanes.push_back(std::move(lane));
  }
  return timeline;
}

}  // namespace weft::experiment
