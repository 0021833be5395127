#pragma once

#include <string>
#include <vector>

namespace weft::experiment {

/// A value with its range, at `x`.
struct Mark {
  double x = 0;
  double value = 0, low = 0, high = 0;
};

struct Series {
  std::string label;
  std::vector<Mark> marks;  ///< in order of x
};

/// Times in seconds over numbers, a line a series with bars from low to high. Either axis is
/// logarithmic where its values are far apart.
std::string line_chart(const std::string& x_title, const std::vector<Series>& series);

/// Speed-ups over numbers of devices; the dashed line is as many times as devices.
std::string speedup_chart(const std::vector<Series>& series);

/// Times in seconds, a row each, with bars from low to high; `x` of the marks does not count. Rows
/// of the same group have the same colour.
struct Row {
  std::string label;
  Mark mark;
  std::size_t group = 0;
};
std::string dot_plot(const std::vector<Row>& rows);

}  // namespace weft::experiment
