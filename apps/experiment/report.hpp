#pragma once

#include <string>
#include <vector>

#include "apps/experiment/results.hpp"

namespace weft::experiment {

/// The experiment as one HTML page that needs nothing else: no network, no script, no font.
/// `results` are `results_of`; well-formed XML too.
std::string report(const Spec& spec, const std::vector<PointResult>& results,
                   const Outcome& outcome);

}  // namespace weft::experiment
