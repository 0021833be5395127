#include "topology/xml_text.hpp"

#include <algorithm>
#include <charconv>

namespace weft {

XmlText::XmlText(std::string_view text, std::string name, const char* root, const char* expected)
    : name_(std::move(name)), text_(text) {
  if (text.size() > kMostBytes)
    throw TopologyError(name_ + ": " + std::to_string(text.size() >> 20) +
                        " MiB is too large for a topology; at most " +
                        std::to_string(kMostBytes >> 20) + " MiB are read");
  const pugi::xml_parse_result result =
      document_.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) {
    const bool at_end = result.status == pugi::status_end_element_mismatch ||
                        result.offset >= static_cast<std::ptrdiff_t>(text.size()) - 1;
    throw TopologyError(name_ + ": line " + std::to_string(line_at(result.offset)) +
                        ": not well-formed XML (" + result.description() + "); expected " +
                        expected + (at_end ? ", complete to its last closing tag" : ""));
  }
  root_ = document_.document_element();
  if (std::string_view(root_.name()) != root)
    throw TopologyError(name_ + ": line " + std::to_string(line_at(root_.offset_debug())) +
                        ": the root element is <" + root_.name() + ">; expected " + expected);
  check_shape();
}

std::size_t XmlText::line_at(std::ptrdiff_t offset) const {
  const auto end = std::clamp<std::ptrdiff_t>(offset, 0, static_cast<std::ptrdiff_t>(text_.size()));
  return 1 + static_cast<std::size_t>(std::count(text_.begin(), text_.begin() + end, '\n'));
}

void XmlText::check_shape() const {
  std::size_t elements = 0;
  int depth = 0;
  for (pugi::xml_node at = root_; at;) {
    if (++elements > kMostElements)
      fail(at, "more than " + std::to_string(kMostElements) + " elements");
    if (depth > kMostDepth)
      fail(at, "elements nested deeper than " + std::to_string(kMostDepth) + " levels");
    if (at.first_child()) {
      at = at.first_child();
      ++depth;
      continue;
    }
    while (at != root_ && !at.next_sibling()) {
      at = at.parent();
      --depth;
    }
    if (at == root_) break;
    at = at.next_sibling();
  }
}

void XmlText::fail(pugi::xml_node node, const std::string& what) const {
  std::string text = name_ + ": line " + std::to_string(line_at(node.offset_debug())) + ": ";
  if (*node.name()) text += std::string("<") + node.name() + ">: ";
  throw TopologyError(text + what);
}

std::uint64_t XmlText::number(pugi::xml_node node, const char* attribute, std::uint64_t fallback,
                              std::uint64_t most) const {
  const pugi::xml_attribute found = node.attribute(attribute);
  if (!found) return fallback;
  const std::string_view text = found.value();
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || value > most)
    fail(node, std::string(attribute) + "=\"" + std::string(text.substr(0, 40)) +
                   "\"; expected a number from 0 to " + std::to_string(most));
  return value;
}

}  // namespace weft
