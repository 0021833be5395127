#pragma once

#include <cstddef>
#include <vector>

#include "apps/common/options.hpp"

namespace weft::apps {
class Output;
}

namespace weft::bench {

/// What `weft bench simulation` is asked to do.
struct SimulationOptions {
  apps::CommonOptions common;
  std::vector<std::size_t> ops{10'000, 100'000, 1'000'000};
  unsigned repeats = 3;
};

/// Times how fast ops go through a simulated machine, in seconds of this one; returns the exit
/// code. Throws for machines that cannot be had.
int run_simulation(const SimulationOptions& options, apps::Output& output);

}  // namespace weft::bench
