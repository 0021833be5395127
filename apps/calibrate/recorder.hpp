#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "actors/simulated/calibration.hpp"
#include "framework/trace.hpp"

namespace weft::calibrate {

/// How long kernels took for what they had to do, over all that was recorded.
class Recorder {
 public:
  /// Adds each op of `data`, of a runtime that records costs, that ran on an actor in `model_of`
  /// (`gpu0`, `socket0`) to its model. `precision`: of products of fp32 on it.
  void add(const TraceData& data, const std::map<std::string, std::string>& model_of,
           const std::string& precision);

  /// The kernels of a model with a point for each different cost, the smallest first.
  [[nodiscard]] std::map<std::string, std::vector<Calibration::Point>> kernels(
      const std::string& model) const;

 private:
  struct Sample {
    std::vector<double> seconds, cores;
  };
  using What = std::tuple<std::string, double, double>;  // precision, flops, bytes
  std::map<std::string, std::map<std::string, std::map<What, Sample>>> models_;
};

}  // namespace weft::calibrate
