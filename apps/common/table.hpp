#pragma once

#include <string>
#include <vector>

namespace weft::apps {

/// A small table of text: the first column to the left, the others to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> headings);

  /// As many cells as headings; missing ones are empty.
  void add(std::vector<std::string> cells);

  /// Lines with a rule below the headings, each indented by `indent` blanks and ended by a newline.
  [[nodiscard]] std::string text(std::size_t indent = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace weft::apps
