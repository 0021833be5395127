#pragma once

#include <string>

#include "actors/runtime.hpp"

namespace weft {

/// Fills what `options` leaves open from the environment and from defaults. Throws `DeviceError`
/// for a variable that is not understood.
RuntimeOptions with_environment(RuntimeOptions options);

/// Reads `auto`, `cuda`, `none`, `emulated`, `emulated:N` into `options`. Throws `DeviceError`.
void parse_gpus(const std::string& text, RuntimeOptions& options);

}  // namespace weft
