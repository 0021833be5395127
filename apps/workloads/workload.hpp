#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/runtime.hpp"
#include "apps/workloads/values.hpp"
#include "framework/kernel_code.hpp"

namespace weft::workloads {

/// A result that differs from the reference. `what()` names the workload's output, the element, and
/// both values.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What one run of a workload did.
struct Result {
  double seconds = 0;     ///< of the measured part, by `Runtime::now`
  double flops = 0;       ///< floating-point operations of its kernels
  double bytes = 0;       ///< that the program means to move between devices or to the host
  std::uint64_t ops = 0;  ///< submitted in the measured part, copies excluded
  std::string check;      ///< `checked: …`, or `not checked: no data`
  /// Further figures by name, such as `alone_seconds`.
  std::vector<std::pair<std::string, double>> figures;
  /// Of the bits of the result, where the workload takes one; 0: it does not, or there are no data.
  std::uint64_t digest = 0;
};

/// What a run gets.
struct Context {
  const Runtime& runtime;
  std::vector<Device> devices;  ///< at least one, each once
  Values values;                ///< one of each parameter
};

/// A short program on the public API with parameters and a check of its result.
struct Workload {
  std::string name;         ///< `cholesky`
  std::string description;  ///< one line for a person
  std::vector<Parameter> parameters;
  /// The kernels of its own that it submits; each has a cpu variant and a cost.
  std::vector<std::shared_ptr<const KernelCode>> kernels;
  /// Runs it once; nothing is in flight when it returns. Throws `WrongResult`, `OpError` if an op
  /// failed, `UsageError` for a device that has no variant of a kernel, `std::invalid_argument` for
  /// values that do not fit together.
  std::function<Result(const Context&)> run;
};

/// All of them, in order of their names.
const std::vector<Workload>& all();
/// Throws `std::invalid_argument` naming those there are.
const Workload& find(const std::string& name);

}  // namespace weft::workloads
