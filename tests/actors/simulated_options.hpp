#pragma once

#include <string>

#include "actors/runtime.hpp"
#include "topology/discover.hpp"

namespace weft::test {

/// A machine in virtual time with data, whose GPUs do 10^12 flop/s and any number of bytes.
inline RuntimeOptions simulated(const std::string& machine, const std::string& scale = "") {
  RuntimeOptions options;
  options.machine = parse_machine(machine);
  options.emulated = EmulatedOptions{};
  options.emulated->flops_per_second = 1e12;
  options.emulated->memory_bytes_per_second = 1e15;
  options.simulate = true;
  options.data = SimulatedData::Real;
  options.serial = false;
  options.trace = true;
  options.simulated_scale = scale;
  return options;
}

}  // namespace weft::test
