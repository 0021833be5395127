// What a simulated runtime says about itself: how long it took, and what might be made faster.
#include <spdlog/spdlog.h>

#include <fstream>
#include <iomanip>

#include "actors/runtime_parts.hpp"

namespace weft {

std::vector<std::string> Runtime::Parts::scale_targets() const {
  if (!simulated) return {};
  SimulatedUse use{simulated->used_links(), {}, {}};
  for (const auto& engine : engines)
    use.gpus.push_back(static_cast<const SimulatedEngine&>(*engine).was_used());
  for (const auto& socket : simulated_sockets) use.sockets.push_back(socket->was_used());
  return weft::scale_targets(machine, use);
}

// One line, so that those of several runtimes stay apart: seconds, then targets, with tabs between.
void Runtime::Parts::write_simulated_report() const {
  std::ofstream file(*options.simulated_report, std::ios::app);
  file << std::fixed << std::setprecision(9)
       << 1e-9 * static_cast<double>(simulation->program().now());
  for (const std::string& target : scale_targets()) file << '\t' << target;
  file << '\n' << std::flush;
  if (!file) spdlog::error("the report {} cannot be written", *options.simulated_report);
}

}  // namespace weft
