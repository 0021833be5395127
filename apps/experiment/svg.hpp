#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace weft::experiment {

/// Text for HTML and SVG, attributes included: `<`, `>`, `&` and quotes as entities.
std::string escaped(const std::string& text);
/// At most two decimals, without trailing zeros.
std::string trimmed(double value);

/// The i-th of a few colours that people with any colour vision tell apart, again from the start
/// after the last. Okabe and Ito, "Color universal design", 2008: https://jfly.uni-koeln.de/color/
const char* colour(std::size_t i);
/// White for 0 to dark blue for 1.
std::string heat(double share);

/// An SVG picture being drawn, in pixels from the upper left.
class Svg {
 public:
  Svg(double width, std::string description)
      : width_(width), description_(std::move(description)) {}

  /// `tip` is shown under the pointer; empty: none.
  void rect(double x, double y, double width, double height, const std::string& fill,
            const std::string& tip = {}, double radius = 0);
  void line(double x1, double y1, double x2, double y2, const char* style);
  void circle(double x, double y, double radius, const std::string& fill,
              const std::string& tip = {});
  void polyline(const std::vector<std::pair<double, double>>& points, const std::string& colour,
                bool is_dashed = false);
  /// `anchor` is start, middle or end; `style` a class of the report's style sheet.
  void text(double x, double y, const std::string& content, const char* anchor = "start",
            const char* style = "tick");
  /// Turned by a quarter to the left around its middle.
  void upright(double x, double y, const std::string& content);

  /// The element; what lies below `height` is cut off.
  [[nodiscard]] std::string finish(double height) const;

 private:
  double width_;
  std::string description_, out_;
};

/// Seconds in the unit that suits the largest of them.
struct TimeUnit {
  double factor = 1;  ///< what a second is
  const char* name = "s";
  explicit TimeUnit(double largest_seconds);
};

/// From 0, or for `is_log` from the least, round values that cover what is given.
std::vector<double> round_ticks(double least, double most, bool is_log);

}  // namespace weft::experiment
