#pragma once

#include <pugixml.hpp>

#include <string>
#include <string_view>

#include "topology/machine.hpp"

namespace weft {

/// A parsed XML text with limits, and errors that name source and line. XML stays in the importers:
/// only their `.cpp` files include this.
class XmlText {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMostElements = 1'000'000;
  static constexpr int kMostDepth = 200;

  /// Throws `TopologyError` if the text is too large, not well-formed, too deep or has a root other
  /// than `root`, `expected` saying what that would be.
  XmlText(std::string_view text, std::string name, const char* root, const char* expected);

  [[nodiscard]] pugi::xml_node root() const { return root_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Throws `TopologyError`: source, line of `node`, what is wrong.
  [[noreturn]] void fail(pugi::xml_node node, const std::string& what) const;

  /// An unsigned attribute. `fallback` where it is absent; an error where it is no number or above
  /// `most`.
  [[nodiscard]] std::uint64_t number(pugi::xml_node node, const char* attribute,
                                     std::uint64_t fallback, std::uint64_t most) const;

 private:
  [[nodiscard]] std::size_t line_at(std::ptrdiff_t offset) const;
  void check_shape() const;

  std::string name_;
  std::string_view text_;
  pugi::xml_document document_;
  pugi::xml_node root_;
};

}  // namespace weft
