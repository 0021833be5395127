#pragma once

#include <string>
#include <vector>

#include "apps/overlap/experiments.hpp"
#include "framework/trace.hpp"

namespace weft::apps {

/// An experiment's rows with what the recording says about each.
struct Result {
  std::string title;
  struct Line {
    Row row;
    double hidden = 0;  ///< share of transfer time hidden under compute
    bool transferred = false;
  };
  std::vector<Line> lines;
};

/// Adds what `recording` says.
Result with_hidden(const std::string& title, const std::vector<Row>& rows,
                   const TraceData& recording);

/// One table of all results.
std::string to_table(const std::vector<Result>& results);

/// `{"experiments":[{"name","seconds","ideal_seconds","ratio","hidden"}],…}`, `hidden` 0 where
/// nothing was transferred.
std::string to_json(const std::vector<Result>& results, const Runtime& runtime,
                    const Workload& workload, int repeat, const std::string& pace);

}  // namespace weft::apps
