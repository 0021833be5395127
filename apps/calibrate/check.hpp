#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/runtime.hpp"
#include "actors/simulated/calibration.hpp"
#include "apps/calibrate/measure.hpp"

namespace weft::calibrate {

/// A program that ran for real and in virtual time.
struct Checked {
  std::string program;
  Calibration::Figure measured;  ///< seconds
  double predicted = 0;          ///< seconds
  /// Of the prediction, relative to what was measured; negative: it promised too much speed.
  [[nodiscard]] double error() const { return predicted / measured.median - 1; }
};

/// Runs a few programs on the live machine and on a simulated one with the same devices and what
/// was measured of them. `options` says which GPUs.
std::vector<Checked> check(const RuntimeOptions& options,
                           const std::shared_ptr<const Calibration>& calibration,
                           std::uint32_t repeats, const Report& report);

}  // namespace weft::calibrate
