#pragma once

#include <string>
#include <vector>

namespace weft::apps {

/// As the program of a command: this one.
inline constexpr const char* kThisProgram = "/proc/self/exe";

/// What a program's simulated runtimes reported, taken together.
struct SimulatedRun {
  double seconds = 0;                ///< virtual, of all its runtimes one after the other
  std::vector<std::string> targets;  ///< what they used, each once
};

/// Runs `command`, a program and its arguments, in virtual time, with `scale` as
/// `WEFT_SIMULATED_SCALE`. Its standard output goes to standard error, or nowhere if `is_quiet`.
/// Throws `std::runtime_error` if it cannot be started, fails, or has no simulated runtime.
SimulatedRun run_simulated(const std::vector<std::string>& command, const std::string& scale,
                           bool is_quiet);

/// Reads the lines that runtimes write; see `RuntimeOptions::simulated_report`. Throws
/// `std::runtime_error` for what is no such line.
SimulatedRun parse_report(const std::string& text);

}  // namespace weft::apps
