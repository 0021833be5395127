#include "apps/experiment/svg.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace weft::experiment {
namespace {

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + trimmed(value) + "\"";
}

std::string title(const std::string& tip) {
  return tip.empty() ? "/>\n" : "><title>" + escaped(tip) + "</title>";
}

std::string closed(const char* element, const std::string& tip) {
  return tip.empty() ? "" : std::string("</") + element + ">\n";
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string trimmed(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string kept = text;
  kept.erase(kept.find_last_not_of('0') + 1);
  if (kept.back() == '.') kept.pop_back();
  return kept == "-0" ? "0" : kept;
}

const char* colour(std::size_t i) {
  static constexpr const char* kColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                             "#E69F00", "#56B4E9", "#7A6A00", "#555555"};
  return kColours[i % std::size(kColours)];
}

std::string heat(double share) {
  const double s = std::clamp(share, 0.0, 1.0);
  const auto mix = [&](double from, double to) {
    return static_cast<int>(std::lround(from + (to - from) * std::sqrt(s)));
  };
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", mix(0xf3, 0x08), mix(0xf6, 0x45),
                mix(0xfa, 0x94));
  return text;
}

std::string Svg::finish(double height) const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"" + attribute("width", width_) +
         attribute("height", height) + " viewBox=\"0 0 " + trimmed(width_) + " " + trimmed(height) +
         "\" aria-label=\"" + escaped(description_) + "\">\n" + out_ + "</svg>\n";
}

void Svg::rect(double x, double y, double width, double height, const std::string& fill,
               const std::string& tip, double radius) {
  out_ += "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
          attribute("height", height) + (radius > 0 ? attribute("rx", radius) : "") + " fill=\"" +
          fill + "\"" + title(tip) + closed("rect", tip);
}

void Svg::line(double x1, double y1, double x2, double y2, const char* style) {
  out_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
          attribute("y2", y2) + " class=\"" + style + "\"/>\n";
}

void Svg::circle(double x, double y, double radius, const std::string& fill,
                 const std::string& tip) {
  out_ += "<circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) +
          " fill=\"" + fill + "\"" + title(tip) + closed("circle", tip);
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, const std::string& colour,
                   bool is_dashed) {
  out_ += "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + colour + "\"" +
          (is_dashed ? " stroke-dasharray=\"5 4\"" : "") + " points=\"";
  for (const auto& [x, y] : points) out_ += trimmed(x) + "," + trimmed(y) + " ";
  out_ += "\"/>\n";
}

void Svg::text(double x, double y, const std::string& content, const char* anchor,
               const char* style) {
  out_ += "<text" + attribute("x", x) + attribute("y", y) + " text-anchor=\"" + anchor +
          "\" class=\"" + style + "\">" + escaped(content) + "</text>\n";
}

void Svg::upright(double x, double y, const std::string& content) {
  out_ += "<text transform=\"translate(" + trimmed(x) + " " + trimmed(y) +
          ") rotate(-90)\" text-anchor=\"middle\" class=\"axis\">" + escaped(content) + "</text>\n";
}

TimeUnit::TimeUnit(double largest_seconds) {
  if (largest_seconds >= 1) return;
  factor = largest_seconds >= 1e-3 ? 1e3 : 1e6;
  name = largest_seconds >= 1e-3 ? "ms" : "µs";
}

std::vector<double> round_ticks(double least, double most, bool is_log) {
  std::vector<double> ticks;
  if (!(most > 0)) return {0, 1};
  if (is_log) {
    for (double power = std::pow(10, std::floor(std::log10(least))); power < most * 10; power *= 10)
      for (const double part : {1.0, 2.0, 5.0}) {
        const double tick = part * power;
        if (tick * 2.6 > least && (ticks.empty() || ticks.back() < most)) ticks.push_back(tick);
      }
    return ticks;
  }
  const double rough = most / 5, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double part : {5.0, 2.0, 1.0})
    if (part * power >= rough) step = part * power;
  for (double tick = 0; ticks.empty() || ticks.back() < most; tick += step) ticks.push_back(tick);
  return ticks;
}

}  // namespace weft::experiment
