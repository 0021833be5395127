#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "actors/simulated/calibration.hpp"
#include "framework/cost_curve.hpp"
#include "framework/op.hpp"

namespace weft {

/// How long an op takes with all of the device to itself.
struct MeasuredTime {
  double seconds = 0;
  double cores = 1;  ///< of a socket that worked on it, in the mean; at least 1
};

/// What was measured of a device's kernels, as curves over what they have to do: their
/// floating-point operations, or bytes if they have none. Any thread.
class MeasuredKernels {
 public:
  /// `precision`: of the runtime, in which matrix products of fp32 are done.
  MeasuredKernels(const Calibration::Device& device, Precision precision);

  /// Nothing for a kernel that was not measured in this precision.
  [[nodiscard]] std::optional<MeasuredTime> find(Op& op) const;

 private:
  struct Curves {
    CostCurve seconds, core_seconds;
  };
  struct Kernel {
    Curves by_flops, by_bytes;
  };
  static Curves curves(const std::vector<Calibration::Point>& points, bool by_flops);

  // By name and what it computes in: `matmul fp32`.
  std::unordered_map<std::string, Kernel> kernels_;
  const std::string product_precision_;
};

}  // namespace weft
