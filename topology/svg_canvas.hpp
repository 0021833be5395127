#pragma once

#include <string>
#include <string_view>

#include "topology/machine.hpp"
#include "topology/picture.hpp"

namespace weft {

/// Fill and outline of one sort of box.
struct SvgStyle {
  const char* fill;
  const char* line;
};

/// The text cut, with an ellipsis, to what fits `width` pixels at a font size.
std::string fitted_text(std::string text, double width, double size);

/// A model's name without what every one of its maker's has: `A100-SXM4`, `EPYC 7402`.
std::string short_model(std::string model);

/// `25.2`, `~100`: a link's rate in GB/s, `~` where assumed.
std::string rate_label(const Link& link);

/// The colour of a kind of link.
const char* colour_of(LinkKind kind);

/// An SVG document being written: shapes in the order they are drawn, labels on top of all.
class SvgCanvas {
 public:
  SvgCanvas(double width, double height);

  void rect(const Picture::Box& box, SvgStyle style, double radius);
  void text(double x, double y, const std::string& content, double size, const char* anchor,
            const char* colour, bool bold = false);
  /// A figure on a line, on a light ground, above everything drawn before and after.
  void label(double x, double y, const std::string& content, const char* colour);
  /// A link along an SVG path: colour by kind, thickness by rate, its description as tool tip.
  void path(const std::string& data, const Link& link);
  void line(double x1, double y1, double x2, double y2, const Link& link);
  /// From one point down (or up) to the level `control` and back to the other.
  void curve(double x1, double y1, double control, double x2, double y2, const Link& link);
  /// A short stroke in the colour of a kind.
  void sample(double x, double y, LinkKind kind);

  /// The finished document.
  std::string finish() { return out_ + labels_ + "</svg>\n"; }

  static std::string number(double value);

 private:
  std::string out_, labels_;
};

}  // namespace weft
