#include "apps/experiment/chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "apps/common/progress.hpp"
#include "apps/experiment/svg.hpp"

namespace weft::experiment {
namespace {

constexpr double kWidth = 500, kHeight = 300, kLeft = 62, kRight = 16, kTop = 14, kBottom = 48;
constexpr double kLegendRow = 18;
constexpr std::size_t kMostSeries = 16;

/// Values on one axis and where they are in the picture.
class Scale {
 public:
  Scale(double least, double most, bool is_log, double from, double to)
      : is_log_(is_log), least_(least), most_(most), from_(from), to_(to) {}
  [[nodiscard]] double operator()(double value) const {
    const double share = is_log_ ? std::log(value / least_) / std::log(most_ / least_)
                                 : (value - least_) / (most_ - least_);
    return from_ + (to_ - from_) * share;
  }

 private:
  bool is_log_;
  double least_, most_, from_, to_;
};

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// A chart's frame with its axes, and the marks in it.
class Chart {
 public:
  Chart(const std::string& description, const std::vector<Series>& series, double factor)
      : shown_(std::min(series.size(), kMostSeries)),
        series_(series),
        factor_(factor),
        svg_(kWidth, description) {
    for (std::size_t s = 0; s < shown_; ++s)
      for (const Mark& mark : series_[s].marks) {
        xs_.insert(mark.x);
        least_ = std::min(least_, factor * mark.low);
        most_ = std::max(most_, factor * mark.high);
      }
  }

  [[nodiscard]] double most() const { return most_; }
  [[nodiscard]] const std::set<double>& xs() const { return xs_; }
  [[nodiscard]] bool is_log() const { return least_ > 0 && most_ / least_ > 20; }
  Svg& svg() { return svg_; }

  void x_axis(const std::string& title) {
    const double first = *xs_.begin(), last = *xs_.rbegin();
    const bool is_log = first > 0 && last / first >= 8;
    const double margin = is_log ? 1.15 : std::max(0.06 * (last - first), 0.3);
    x_ = Scale(is_log ? first / margin : first - margin, is_log ? last * margin : last + margin,
               is_log, kLeft, kWidth - kRight);
    double right = -1e9;
    for (const double x : xs_) {
      const double at = x_(x);
      const std::string text = shown(x);
      const double half = 4.0 * static_cast<double>(text.size());
      svg_.line(at, kHeight - kBottom, at, kHeight - kBottom + 4, "frame");
      if (at - half < right + 4) continue;  // no room for its text
      svg_.text(at, kHeight - kBottom + 17, text, "middle");
      right = at + half;
    }
    svg_.text((kLeft + kWidth - kRight) / 2, kHeight - 10, title, "middle", "axis");
  }

  void y_axis(const std::string& title, double least_top = 0) {
    const auto ticks = round_ticks(least_, std::max(most_, least_top), is_log());
    y_ = Scale(ticks.front(), ticks.back(), is_log(), kHeight - kBottom, kTop);
    for (const double tick : ticks) {
      svg_.line(kLeft, y_(tick), kWidth - kRight, y_(tick), "grid");
      svg_.text(kLeft - 7, y_(tick) + 4, shown(tick), "end");
    }
    svg_.line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "frame");
    svg_.upright(14, (kTop + kHeight - kBottom) / 2, title);
  }

  [[nodiscard]] std::pair<double, double> at(double x, double y) const { return {x_(x), y_(y)}; }

  std::string finish(const std::string& unit) {
    for (std::size_t s = 0; s < shown_; ++s) draw(s, unit);
    for (std::size_t s = 0; s < shown_; ++s) {
      const double y = kHeight + kLegendRow * static_cast<double>(s) + 8;
      svg_.rect(kLeft, y - 5, 22, 4, colour(s), "", 2);
      svg_.text(kLeft + 30, y, series_[s].label.empty() ? "time" : series_[s].label);
    }
    std::string text = svg_.finish(kHeight + kLegendRow * static_cast<double>(shown_));
    if (shown_ < series_.size())
      text += "<p class=\"note\">The first " + std::to_string(shown_) + " of " +
              std::to_string(series_.size()) + " lines; all are in the table.</p>\n";
    return text;
  }

 private:
  void draw(std::size_t s, const std::string& unit) {
    // Beside each other, so that no bar hides another.
    const double aside = std::min(4.0, 24.0 / static_cast<double>(shown_)) *
                         (static_cast<double>(s) - static_cast<double>(shown_ - 1) / 2);
    std::vector<std::pair<double, double>> points;
    for (const Mark& mark : series_[s].marks) {
      points.push_back(at(mark.x, factor_ * mark.value));
      points.back().first += aside;
    }
    svg_.polyline(points, colour(s), s >= 8);  // there are eight colours
    for (const Mark& mark : series_[s].marks) {
      const auto [middle, low] = at(mark.x, factor_ * mark.low);
      const double x = middle + aside;
      const double high = at(mark.x, factor_ * mark.high).second;
      if (low - high > 1) {
        svg_.rect(x - 1, high, 2, low - high, colour(s));
        svg_.rect(x - 4, high - 0.75, 8, 1.5, colour(s));
        svg_.rect(x - 4, low - 0.75, 8, 1.5, colour(s));
      }
      svg_.circle(
          x, at(mark.x, factor_ * mark.value).second, 4, colour(s),
          series_[s].label + " at " + shown(mark.x) + ": " + shown(factor_ * mark.value) + unit);
    }
  }

  std::size_t shown_;
  const std::vector<Series>& series_;
  double factor_;
  Svg svg_;
  std::set<double> xs_;
  double least_ = 1e300, most_ = 0;
  Scale x_{0, 1, false, 0, 1}, y_{0, 1, false, 0, 1};
};

double largest(const std::vector<Series>& series) {
  double most = 0;
  for (const Series& each : series)
    for (const Mark& mark : each.marks) most = std::max(most, mark.high);
  return most;
}

}  // namespace

std::string line_chart(const std::string& x_title, const std::vector<Series>& series) {
  const TimeUnit unit(largest(series));
  Chart chart("time over " + x_title, series, unit.factor);
  chart.x_axis(x_title);
  chart.y_axis(std::string("time (") + unit.name + ")");
  return chart.finish(std::string(" ") + unit.name);
}

std::string speedup_chart(const std::vector<Series>& series) {
  Chart chart("speed-up over devices", series, 1);
  chart.x_axis("devices");
  const double first = *chart.xs().begin(), last = *chart.xs().rbegin();
  chart.y_axis("speed-up", last / first);
  std::vector<std::pair<double, double>> ideal;
  for (int i = 0; i <= 32; ++i) {  // a curve where one axis is logarithmic
    const double devices = first + (last - first) * i / 32;
    ideal.push_back(chart.at(devices, devices / first));
  }
  chart.svg().polyline(ideal, "#999999", true);
  return chart.finish(" x");
}

std::string dot_plot(const std::vector<Row>& rows) {
  constexpr double kRow = 24, kWide = 1020, kAxis = 44, kFigure = 80;
  std::size_t longest = 0;
  double most = 0;
  for (const Row& row : rows) {
    longest = std::max(longest, row.label.size());
    most = std::max(most, row.mark.high);
  }
  const double left = std::min(420.0, 20 + 7.0 * static_cast<double>(longest));
  const double bottom = 8 + kRow * static_cast<double>(rows.size());
  const TimeUnit unit(most);
  Svg svg(kWide, "times");
  const auto ticks = round_ticks(0, unit.factor * most, false);
  const Scale x(0, ticks.back(), false, left, kWide - kFigure);
  for (const double tick : ticks) {
    svg.line(x(tick), 4, x(tick), bottom, "grid");
    svg.text(x(tick), bottom + 16, shown(tick), "middle");
  }
  svg.text((left + kWide - kFigure) / 2, bottom + 36, std::string("time (") + unit.name + ")",
           "middle", "axis");
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto& [label, mark, group] = rows[r];
    const double y = 8 + kRow * (static_cast<double>(r) + 0.5);
    const double value = x(unit.factor * mark.value);
    const double low = x(unit.factor * mark.low), high = x(unit.factor * mark.high);
    svg.text(left - 10, y + 4, label, "end");
    svg.rect(left, y - 7, value - left, 14, std::string(colour(group)) + "33", "", 2);
    svg.rect(low, y - 1, std::max(high - low, 1.0), 2, colour(group));
    svg.rect(low - 0.75, y - 5, 1.5, 10, colour(group));
    svg.rect(high - 0.75, y - 5, 1.5, 10, colour(group));
    svg.circle(value, y, 5, colour(group), label + ": " + apps::format_seconds(mark.value));
    svg.text(kWide - kFigure + 12, y + 4, apps::format_seconds(mark.value));
  }
  return svg.finish(bottom + kAxis);
}

}  // namespace weft::experiment
