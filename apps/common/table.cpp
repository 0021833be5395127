#include "apps/common/table.hpp"

#include <algorithm>

namespace weft::apps {
namespace {

// Characters as a terminal shows them: bytes that go on with a UTF-8 character take no room.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

Table::Table(std::vector<std::string> headings) {
  rows_.push_back(std::move(headings));
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(rows_.front().size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(std::size_t indent) const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < columns; ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line(indent, ' ');
    for (std::size_t c = 0; c < columns; ++c) {
      const std::string& cell = rows_[r][c];
      const std::string blanks(widths[c] - width_of(cell), ' ');
      if (c > 0) line += "  ";
      line += c == 0 ? cell + blanks : blanks + cell;
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + '\n';
    if (r > 0) continue;
    text += std::string(indent, ' ');
    for (std::size_t c = 0; c < columns; ++c)
      text += (c > 0 ? "  " : "") + std::string(widths[c], '-');
    text += '\n';
  }
  return text;
}

}  // namespace weft::apps
