#pragma once

#include <string>

#include "actors/runtime.hpp"

namespace weft {

/// Fills what `options` leaves open from the environment and from defaults. Throws `DeviceError`
/// for a variable that is not understood, `CalibrationError` for a file of `WEFT_CALIBRATION`.
RuntimeOptions with_environment(RuntimeOptions options);

/// Reads `auto`, `cuda`, `none`, `emulated`, `emulated:N` into `options`. Throws `DeviceError`.
void parse_gpus(const std::string& text, RuntimeOptions& options);

/// `real` or `none`. Throws `DeviceError`.
SimulatedData parse_data(const std::string& text);

/// `fp32`, `tf32` or `bf16`. Throws `DeviceError`.
Precision parse_precision(const std::string& text);
const char* to_string(Precision precision);

}  // namespace weft
