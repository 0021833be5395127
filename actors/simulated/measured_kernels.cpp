#include "actors/simulated/measured_kernels.hpp"

#include <algorithm>

#include "actors/runtime_options.hpp"
#include "framework/kernel_code.hpp"
#include "framework/op_cost.hpp"

namespace weft {
namespace {

std::string key(const std::string& kernel, const std::string& precision) {
  return kernel + " " + precision;
}

}  // namespace

MeasuredKernels::MeasuredKernels(const Calibration::Device& device, Precision precision)
    : product_precision_(to_string(precision)) {
  for (const auto& [name, points] : device.kernels) {
    std::unordered_map<std::string, std::vector<Calibration::Point>> in;
    for (const Calibration::Point& point : points) in[point.precision].push_back(point);
    for (const auto& [each, list] : in)
      kernels_[key(name, each)] = {curves(list, true), curves(list, false)};
  }
}

MeasuredKernels::Curves MeasuredKernels::curves(const std::vector<Calibration::Point>& points,
                                                bool by_flops) {
  std::vector<CostCurve::Point> seconds, core_seconds;
  for (const Calibration::Point& point : points) {
    if (by_flops != (point.flops > 0)) continue;
    const double amount = by_flops ? point.flops : point.bytes;
    seconds.push_back({amount, point.seconds.median});
    core_seconds.push_back({amount, point.seconds.median * point.cores});
  }
  return {CostCurve(std::move(seconds)), CostCurve(std::move(core_seconds))};
}

std::optional<MeasuredTime> MeasuredKernels::find(Op& op) const {
  const std::string precision = is_fp64(op)           ? "fp64"
                                : op.code->is_product ? product_precision_
                                                      : "fp32";
  const auto found = kernels_.find(key(op.code->name, precision));
  if (found == kernels_.end()) return std::nullopt;
  const Cost cost = cost_of(op);
  const bool by_flops = cost.flops > 0;
  const Curves& curves = by_flops ? found->second.by_flops : found->second.by_bytes;
  if (curves.seconds.is_empty()) return std::nullopt;
  const double amount = by_flops ? cost.flops : cost.bytes;
  const double seconds = curves.seconds.seconds(amount);
  return MeasuredTime{seconds, std::max(1.0, curves.core_seconds.seconds(amount) / seconds)};
}

}  // namespace weft
