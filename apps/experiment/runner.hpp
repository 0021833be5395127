#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/experiment/run_log.hpp"
#include "apps/experiment/spec.hpp"

namespace weft::experiment {

/// A point that was not run, and why.
struct LeftOut {
  Point point;
  std::string reason;
};

/// A machine of the spec, for the report.
struct UsedMachine {
  std::string label, source;
  Machine machine;
};

struct Outcome {
  std::vector<LeftOut> left_out;
  std::vector<UsedMachine> machines;  ///< in order of the spec
};

/// Runs what `log` does not have yet, a runtime a point, and adds each run as it finishes. A run
/// that fails is added as failed and the point's other repeats are left. Runs of the engines that
/// take real time are warmed up once a point. `on_done(runs, note)` counts runs that are there.
/// Throws `SpecError` for a machine that cannot be had, before anything runs.
Outcome run_all(const Spec& spec, const std::vector<Point>& points, RunLog& log,
                const std::function<void(std::uint64_t, const std::string&)>& on_done);

}  // namespace weft::experiment
