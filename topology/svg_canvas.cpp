#include "topology/svg_canvas.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "topology/describe.hpp"
#include "topology/quantity.hpp"

namespace weft {
namespace {

/// 1 pixel at 2 GB/s and below, one and a quarter more for each doubling.
double thickness_of(const Link& link) {
  const double rate = std::max(link.bytes_per_second[0], link.bytes_per_second[1]) / 2e9;
  return rate <= 1 ? 1 : std::min(11.0, 1 + 1.25 * std::log2(rate));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) out += c;
    }
  return out;
}

std::string text_of(double x, double y, const std::string& content, double size, const char* anchor,
                    const char* colour, bool bold) {
  return "<text x=\"" + SvgCanvas::number(x) + "\" y=\"" + SvgCanvas::number(y) +
         "\" font-size=\"" + SvgCanvas::number(size) + "\" text-anchor=\"" + anchor + "\" fill=\"" +
         colour + "\"" + (bold ? " font-weight=\"bold\"" : "") + ">" + escaped(content) +
         "</text>\n";
}

/// Takes `noise` out where it begins a word.
void erase_word(std::string& text, std::string_view noise) {
  for (std::size_t at = text.find(noise); at != std::string::npos; at = text.find(noise, at)) {
    if (at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1])))
      text.erase(at, noise.size());
    else
      ++at;
  }
}

}  // namespace

std::string fitted_text(std::string text, double width, double size) {
  const auto most = static_cast<std::size_t>(std::max(1.0, width / (0.6 * size)));
  if (text.size() <= most) return text;
  std::size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

std::string short_model(std::string model) {
  for (const std::string_view mark : {"(R)", "(TM)", "(tm)", "(r)"})
    for (std::size_t at; (at = model.find(mark)) != std::string::npos;)
      model.erase(at, mark.size());
  for (const std::string_view noise :
       {"NVIDIA ", "Tesla ", "GeForce ", "AMD ", "INSTINCT ", "Instinct ", "Intel ", "Xeon ",
        "Data Center GPU ", "Accelerator", "Processor", "altivec supported", "CPU ", "Graphics"})
    erase_word(model, noise);
  if (const std::size_t at = model.find(" @ "); at != std::string::npos) model.erase(at);
  if (const std::size_t open = model.rfind('['); open != std::string::npos && model.ends_with("]"))
    model = model.substr(open + 1, model.size() - open - 2);
  for (const std::string_view noise : {"Instinct ", "Tesla "}) erase_word(model, noise);
  std::string_view text = trimmed(model);
  while (!text.empty() && (text.back() == ' ' || text.back() == ',')) text.remove_suffix(1);
  return std::string(text);
}

std::string rate_label(const Link& link) {
  if (link.bytes_per_second[0] <= 0) return "out of order";
  const double rate = link.bytes_per_second[0] / 1e9;
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", rate < 99.95 ? 1 : 0, rate);
  std::string figure = text;
  if (figure.ends_with(".0")) figure.resize(figure.size() - 2);
  return (link.provenance == Provenance::Assumed ? "~" : "") + figure;
}

const char* colour_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::Nvlink:
      return "#1b9a4b";
    case LinkKind::Xgmi:
      return "#c8283c";
    case LinkKind::C2c:
      return "#8a3fc0";
    case LinkKind::Socket:
    case LinkKind::Bus:
      return "#2458a6";
    case LinkKind::Network:
      return "#d9822b";
    default:
      return "#6b7686";
  }
}

SvgCanvas::SvgCanvas(double width, double height) {
  out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width) + "\" height=\"" +
         number(height) + "\" viewBox=\"0 0 " + number(width) + " " + number(height) +
         "\" font-family=\"Helvetica, Arial, 'DejaVu Sans', 'Liberation Sans', sans-serif\">\n"
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
}

std::string SvgCanvas::number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

void SvgCanvas::rect(const Picture::Box& box, SvgStyle style, double radius) {
  out_ += "<rect x=\"" + number(box.x) + "\" y=\"" + number(box.y) + "\" width=\"" +
          number(box.width) + "\" height=\"" + number(box.height) + "\" rx=\"" + number(radius) +
          "\" fill=\"" + style.fill + "\" stroke=\"" + style.line + "\"/>\n";
}

void SvgCanvas::text(double x, double y, const std::string& content, double size,
                     const char* anchor, const char* colour, bool bold) {
  out_ += text_of(x, y, content, size, anchor, colour, bold);
}

void SvgCanvas::label(double x, double y, const std::string& content, const char* colour) {
  const double width = 6.4 * static_cast<double>(content.size()) + 6;
  labels_ += "<rect x=\"" + number(x - width / 2) + "\" y=\"" + number(y - 9) + "\" width=\"" +
             number(width) +
             "\" height=\"13\" rx=\"3\" fill=\"#ffffff\" fill-opacity=\"0.88\"/>\n" +
             text_of(x, y + 1.5, content, 10.5, "middle", colour, false);
}

void SvgCanvas::path(const std::string& data, const Link& link) {
  out_ += "<path d=\"" + data + "\" fill=\"none\" stroke=\"" + colour_of(link.kind) +
          "\" stroke-width=\"" + number(thickness_of(link)) +
          "\" stroke-linecap=\"round\"><title>" +
          escaped(to_string(link.a) + " - " + to_string(link.b) + ": " + describe(link)) +
          "</title></path>\n";
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, const Link& link) {
  path("M" + number(x1) + " " + number(y1) + " L" + number(x2) + " " + number(y2), link);
}

void SvgCanvas::curve(double x1, double y1, double control, double x2, double y2,
                      const Link& link) {
  path("M" + number(x1) + " " + number(y1) + " C" + number(x1) + " " + number(control) + " " +
           number(x2) + " " + number(control) + " " + number(x2) + " " + number(y2),
       link);
}

void SvgCanvas::sample(double x, double y, LinkKind kind) {
  out_ += "<path d=\"M" + number(x) + " " + number(y) + " h22\" stroke=\"" + colour_of(kind) +
          "\" stroke-width=\"4\"/>\n";
}

}  // namespace weft
