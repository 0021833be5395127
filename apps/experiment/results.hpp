#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/experiment/run_record.hpp"
#include "apps/experiment/runner.hpp"

namespace weft::experiment {

/// The repeats of one point taken together.
struct PointResult {
  std::vector<const RunRecord*> runs;      ///< those that did not fail, the fastest first
  const RunRecord* any = nullptr;          ///< one of them, or the one that failed
  std::string error;                       ///< of the run that failed, if one did
  double median = 0, least = 0, most = 0;  ///< seconds; 0 where none ran

  /// (most - least) / median.
  [[nodiscard]] double spread() const { return median > 0 ? (most - least) / median : 0; }
  /// The run in the middle. There is one.
  [[nodiscard]] const RunRecord& typical() const { return *runs[(runs.size() - 1) / 2]; }
};

/// Of each point that has runs, in order of `points`; points into `records`.
std::vector<PointResult> results_of(const std::vector<Point>& points,
                                    const std::vector<RunRecord>& records);

/// What tells a run apart: `machine`, `engine`, `devices`, parameters and options by name.
using Coordinates = std::vector<std::pair<std::string, std::string>>;
Coordinates coordinates_of(const RunRecord& record);

/// The coordinate of that name, empty if the run has none.
std::string value_of(const RunRecord& record, const std::string& name);
/// Names of those that are not the same for all of `results`.
std::vector<std::string> varying(const std::vector<PointResult>& results);
/// The values of those in `names`: `nvlink, 2 gpus, n = 256`; `but` is left out.
std::string label_of(const RunRecord& record, const std::vector<std::string>& names,
                     const std::string& but = {});

/// A line per run, with a heading.
std::string to_csv(const std::vector<RunRecord>& records);
/// `{"name","spec","machines","points":[…],"runs":[…],"left_out":[…]}`, see the README.
nlohmann::ordered_json to_json(const Spec& spec, const std::vector<PointResult>& results,
                               const std::vector<RunRecord>& records, const Outcome& outcome);

}  // namespace weft::experiment
