#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/bench/device_report.hpp"

namespace weft::bench {

/// What `weft bench gpu-ops` was asked for.
struct GpuOpOptions : DeviceBenchOptions {
  std::uint32_t ops = 4000;       ///< of a run; rounds through the host: a fourth of it
  std::vector<std::string> only;  ///< names of cases; empty: all that there are GPUs for
  bool learn = false;             ///< run times are learnt meanwhile, as behind `anywhere`
};

/// One way in which small ops depend on each other.
struct GpuOpCase {
  std::string name;      ///< `chain_4B`
  std::string about;     ///< one line
  std::string per;       ///< op, hop or round
  std::size_t gpus = 1;  ///< how many it needs
  std::uint32_t count = 0;
  /// Submits all of it and returns the future of the last.
  std::function<Future()> submit;
  /// Throws `std::runtime_error` if what the last run left is wrong. All is done by then.
  std::function<void()> check;
};

/// The cases on `runtime`, which outlives what is returned. Ops are the built-in `fill` of a few
/// elements: one small kernel on a GPU.
std::vector<GpuOpCase> gpu_op_cases(const Runtime& runtime, std::uint32_t ops);

struct GpuOpRow {
  std::string name, per;
  std::uint32_t count = 0;
  Spread us;         ///< from the first submission until the host sees the last done, over `count`
  Spread submit_us;  ///< of it until the last submission returned
};

GpuOpRow measure(const Runtime& runtime, const GpuOpCase& wanted, std::uint32_t repeats);

/// Everything the subcommand does. Returns the exit code.
int run_gpu_ops(const GpuOpOptions& options, apps::Output& output);

}  // namespace weft::bench
