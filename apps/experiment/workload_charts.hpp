#pragma once

#include <string>
#include <vector>

#include "apps/experiment/results.hpp"

namespace weft::experiment {

/// A picture with the text below it, for the report.
std::string figure(const std::string& picture, const std::string& caption);

/// Times and speed-ups of the results of one workload, which all have runs: over the parameter that
/// is swept, or as rows where none is; a chart a machine where one would have too many lines.
std::string charts(const std::vector<PointResult>& results);

}  // namespace weft::experiment
