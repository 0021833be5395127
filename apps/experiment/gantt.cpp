#include "apps/experiment/gantt.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "apps/common/progress.hpp"
#include "apps/experiment/svg.hpp"

namespace weft::experiment {
namespace {

constexpr double kPageWidth = 1020, kBarsLeft = 150, kPlot = 660, kBusyLeft = 832, kBusyWidth = 130;
constexpr double kHeading = 22, kGap = 5, kAxis = 40, kLegendLine = 20;
constexpr std::size_t kMostLanes = 64;
constexpr std::size_t kNames = 8;  // with a colour of their own
constexpr const char* kOther = "#a8a8a8";

// The lanes of one actor, which lie one below the other.
struct Group {
  std::string actor;
  TrackKind kind;
  std::vector<const Timeline::Lane*> lanes;
};

std::vector<Group> groups_of(const Timeline& timeline, std::size_t& left_out) {
  std::vector<const Timeline::Lane*> lanes;
  for (const auto& lane : timeline.lanes) lanes.push_back(&lane);
  left_out = 0;
  if (lanes.size() > kMostLanes) {
    std::stable_sort(lanes.begin(), lanes.end(),
                     [](const auto* a, const auto* b) { return a->busy > b->busy; });
    left_out = lanes.size() - kMostLanes;
    lanes.resize(kMostLanes);
    std::sort(lanes.begin(), lanes.end());  // elements of one vector: its order again
  }
  std::vector<Group> groups;
  for (const auto* lane : lanes) {
    if (groups.empty() || groups.back().actor != lane->actor)
      groups.push_back({lane->actor, lane->kind, {}});
    groups.back().lanes.push_back(lane);
  }
  std::stable_partition(groups.begin(), groups.end(),
                        [](const Group& group) { return group.kind != TrackKind::Link; });
  return groups;
}

/// Colours of names: those that take the most time have their own.
class Colours {
 public:
  explicit Colours(const Timeline& timeline) : timeline_(timeline) {
    std::map<std::uint32_t, double> time;
    for (const auto& lane : timeline.lanes)
      for (const auto& bar : lane.bars) time[bar.name] += bar.end - bar.start;
    for (const auto& [name, seconds] : time) order_.push_back(name);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return time.at(a) > time.at(b); });
    // Copies have the same colour in every picture.
    for (std::size_t i = 0, next = 0; i < order_.size(); ++i) {
      const std::string& name = timeline.names[order_[i]];
      if (name == "copy")
        colours_[order_[i]] = colour(4);
      else
        colours_[order_[i]] = next < kNames - 1 ? colour(next < 4 ? next : next + 1) : kOther,
        ++next;
    }
  }
  [[nodiscard]] const char* of(std::uint32_t name) const { return colours_.at(name); }

  // Names side by side from `y` down; returns where they end.
  double legend(Svg& svg, double y) const {
    double x = kBarsLeft;
    bool has_other = false;
    const auto entry = [&](const std::string& text, const char* fill) {
      const double width = 28 + 7.2 * static_cast<double>(text.size());
      if (x + width > kPageWidth) x = kBarsLeft, y += kLegendLine;
      svg.rect(x, y - 9, 12, 10, fill, "", 2);
      svg.text(x + 17, y, text);
      x += width;
    };
    for (const std::uint32_t name : order_) {
      if (of(name) == kOther)
        has_other = true;
      else
        entry(timeline_.names[name], of(name));
    }
    if (has_other) entry("others", kOther);
    return y + kLegendLine;
  }

 private:
  const Timeline& timeline_;
  std::vector<std::uint32_t> order_;
  std::map<std::uint32_t, const char*> colours_;
};

class Picture {
 public:
  explicit Picture(const RunRecord& run)
      : run_(run),
        timeline_(*run.timeline),
        groups_(groups_of(timeline_, left_out_)),
        unit_(timeline_.seconds),
        colours_(timeline_) {
    for (const Group& group : groups_) {
      lanes_ += group.lanes.size();
      has_links_ = has_links_ || group.kind == TrackKind::Link;
    }
    row_ = lanes_ <= 16 ? 17 : lanes_ <= 32 ? 13 : 10;
  }

  std::string draw() {
    Svg svg(kPageWidth, "timeline of " + run_.workload + " on " + run_.machine);
    svg.text(kBarsLeft, 13, "what ran when", "start", "axis");
    svg.text(kBusyLeft, 13, "busy share of the time", "start", "axis");
    double y = kHeading;
    for (const Group& group : groups_) y = draw_group(svg, group, y) + kGap;
    double next = axis(svg, kHeading, y - kGap);
    if (has_links_) next = draw_strip(svg, next + 18);
    std::string text = svg.finish(colours_.legend(svg, next + 14) - kLegendLine + 8);
    if (left_out_)
      text += "<p class=\"note\">The " + std::to_string(kMostLanes) + " busiest lanes; " +
              std::to_string(left_out_) + " others are left out.</p>\n";
    return text;
  }

 private:
  [[nodiscard]] double x(double seconds) const {
    return timeline_.seconds > 0 ? kBarsLeft + kPlot * seconds / timeline_.seconds : kBarsLeft;
  }

  double draw_group(Svg& svg, const Group& group, double y) {
    const double height = row_ * static_cast<double>(group.lanes.size());
    for (std::size_t l = 0; l < group.lanes.size(); ++l) {
      const Timeline::Lane& lane = *group.lanes[l];
      const double top = y + row_ * static_cast<double>(l);
      svg.rect(kBarsLeft, top, kPlot, row_ - 1, "#f3f4f6");
      svg.text(kBarsLeft - 6, top + row_ / 2 + 3.5,
               l == 0 ? lane.actor + " " + lane.lane : lane.lane, "end",
               row_ > 12 ? "lane" : "small");
      for (const auto& bar : lane.bars)
        svg.rect(x(bar.start), top + 1, std::max(x(bar.end) - x(bar.start) - 0.5, 0.6), row_ - 3,
                 colours_.of(bar.name),
                 lane.bars.size() > 400 ? ""
                                        : timeline_.names[bar.name] + ", " +
                                              apps::format_seconds(bar.end - bar.start));
    }
    draw_busy(svg, group, y, height);
    return y + height;
  }

  void draw_busy(Svg& svg, const Group& group, double y, double height) const {
    const auto& actors = run_.activity.actors;
    const auto actor = std::find_if(actors.begin(), actors.end(),
                                    [&](const auto& each) { return each.name == group.actor; });
    if (actor == actors.end()) return;
    const double thick = std::min(height - 1, 16.0), top = y + (height - 1 - thick) / 2;
    const char* fill = group.kind == TrackKind::Link ? colour(4) : colour(0);
    svg.rect(kBusyLeft, top, kBusyWidth, thick, "#f3f4f6");
    svg.rect(kBusyLeft, top, kBusyWidth * std::clamp(actor->busy, 0.0, 1.0), thick, fill,
             group.actor);
    svg.text(kBusyLeft + kBusyWidth + 6, top + thick / 2 + 4,
             std::to_string(std::lround(100 * actor->busy)) + " %");
  }

  double axis(Svg& svg, double top, double bottom) const {
    for (const double tick : round_ticks(0, unit_.factor * timeline_.seconds, false)) {
      const double at = x(tick / unit_.factor);
      if (at > kBarsLeft + kPlot + 0.5) break;
      svg.line(at, top, at, bottom + 4, "grid");
      svg.text(at, bottom + 16, trimmed(tick), "middle");
    }
    svg.text(kBarsLeft + kPlot, bottom + 32, std::string("time (") + unit_.name + ")", "end",
             "axis");
    return bottom + kAxis - 8;
  }

  double draw_strip(Svg& svg, double y) const {
    svg.text(kBarsLeft, y, "use of each link's direction over time", "start", "axis");
    svg.text(kBusyLeft, y, "0 %", "start");
    for (int i = 0; i < 10; ++i) svg.rect(kBusyLeft + 28 + 6 * i, y - 9, 6, 10, heat(i / 9.0));
    svg.text(kBusyLeft + 94, y, "100 %");
    y += 8;
    const double width = kPlot / static_cast<double>(Timeline::kBins);
    for (const Group& group : groups_) {
      if (group.kind != TrackKind::Link) continue;
      for (const auto* lane : group.lanes) {
        svg.text(kBarsLeft - 6, y + row_ / 2 + 3.5, lane->actor + " " + lane->lane, "end",
                 row_ > 12 ? "lane" : "small");
        for (std::size_t bin = 0, end = 0; bin < lane->use.size(); bin = end) {
          const std::string fill = heat(lane->use[bin]);  // equal neighbours are one cell
          while (end < lane->use.size() && heat(lane->use[end]) == fill) ++end;
          svg.rect(kBarsLeft + width * static_cast<double>(bin), y,
                   width * static_cast<double>(end - bin), row_ - 1, fill);
        }
        y += row_;
      }
    }
    return y + 6;
  }

  const RunRecord& run_;
  const Timeline& timeline_;
  std::size_t left_out_ = 0, lanes_ = 0;
  bool has_links_ = false;
  std::vector<Group> groups_;
  double row_ = 17;
  TimeUnit unit_;
  Colours colours_;
};

}  // namespace

std::string gantt(const RunRecord& run) {
  return Picture(run).draw();
}

}  // namespace weft::experiment
