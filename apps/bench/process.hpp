#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace weft::bench {

/// Resident bytes of this process now, and the most it ever had since it began to run its program.
std::size_t resident_bytes();
std::size_t peak_resident_bytes();

/// Processor time of this process so far, user and system, all threads.
double processor_seconds();

/// What a child process left behind.
struct ChildResult {
  int exit_code = -1;  ///< 128 + signal if it was ended by one
  bool timed_out = false;
  std::string output;  ///< its standard output
};

/// Runs this program again with `arguments` and waits for it. Standard error is shared. `settings`
/// are added to the environment. A child that takes longer than `limit` is ended. Throws
/// `std::runtime_error` if it cannot be started.
ChildResult run_self(const std::vector<std::string>& arguments,
                     const std::vector<std::pair<std::string, std::string>>& settings,
                     std::chrono::seconds limit);

}  // namespace weft::bench
