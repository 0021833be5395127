#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/bench/graph.hpp"

namespace weft::bench {

/// How a system is set up for a measurement.
struct ExecutorSetup {
  std::uint32_t threads = 1;   ///< that run ops, one a core; who submits may be one more
  bool trace = false;          ///< weft: record
  std::int64_t admission = 0;  ///< weft: ops taken in ahead of execution; 0: as usual
};

/// A system that runs graphs. One per process.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Runs all ops of `graph` and returns the seconds from the first submission until the last op
  /// has ended and the ops are released. Blocks. Data are made before, in no one's time.
  virtual double run(const OpGraph& graph) = 0;
};

/// A system as the command lists it.
struct System {
  std::string name;      ///< `weft-host`, `tbb-flow`
  std::string about;     ///< one line
  std::string left_out;  ///< why it cannot run here; empty if it can
  bool is_usual = true;  ///< measured unless others are named
  std::unique_ptr<Executor> (*make)(const ExecutorSetup& setup) = nullptr;
};

/// Ours first.
const std::vector<System>& systems();

/// Throws `std::invalid_argument` for a name that is not known, or a system that is left out.
std::unique_ptr<Executor> make_executor(const std::string& system, const ExecutorSetup& setup);

// One file each; those whose packages are missing are not built.
std::unique_ptr<Executor> make_weft_host(const ExecutorSetup& setup);
std::unique_ptr<Executor> make_weft_anywhere(const ExecutorSetup& setup);
std::unique_ptr<Executor> make_weft_emulated(const ExecutorSetup& setup);
std::unique_ptr<Executor> make_weft_plan(const ExecutorSetup& setup);
std::unique_ptr<Executor> make_weft_plan_emulated(const ExecutorSetup& setup);
std::unique_ptr<Executor> make_tbb_flow(const ExecutorSetup& setup);
std::unique_ptr<Executor> make_tbb_flow_reused(const ExecutorSetup& setup);
std::unique_ptr<Executor> make_tbb_group(const ExecutorSetup& setup);
std::unique_ptr<Executor> make_openmp(const ExecutorSetup& setup);
std::unique_ptr<Executor> make_openmp_reused(const ExecutorSetup& setup);
std::unique_ptr<Executor> make_starpu(const ExecutorSetup& setup);

/// Seconds between two points of the steady clock.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace weft::bench
