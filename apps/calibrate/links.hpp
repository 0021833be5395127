#pragma once

#include "apps/calibrate/measure.hpp"

namespace weft::calibrate {

/// Adds links and memories of the live machine, measured as `weft topo --measure` does, `times`
/// times.
void add_links(const TopoHooks& hooks, std::uint32_t times, const Report& report,
               Calibration& calibration);

/// Adds the links of emulated GPUs, measured as `weft bench links` does, with copies of ops. Takes
/// what ops cost beside it from `calibration`. `runtime` does not record.
void add_emulated_links(const Runtime& runtime, std::uint32_t repeats, const Report& report,
                        Calibration& calibration);

}  // namespace weft::calibrate
