#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/common/options.hpp"

namespace weft::apps {
class Output;
}

namespace weft::bench {

/// What `weft bench placement` is asked to do.
struct PlacementOptions {
  apps::CommonOptions common;
  std::vector<std::string> policies{"earliest_finish", "nearest"};
  std::size_t ops = 3000;
  unsigned repeats = 9;
};

/// Times what it costs a submitter that a policy places each op, against naming the device; returns
/// the exit code. Throws for machines and policies that there are not.
int run_placement(const PlacementOptions& options, apps::Output& output);

}  // namespace weft::bench
