#pragma once

#include <string>

#include "apps/experiment/run_record.hpp"

namespace weft::experiment {

/// One run as a picture: a row per lane with what it ran and when, beside it how busy each actor
/// was, and below, on the same axis, how much of the time each link carried something. The lanes
/// with the most to do where there are too many. `run` has a timeline.
std::string gantt(const RunRecord& run);

}  // namespace weft::experiment
