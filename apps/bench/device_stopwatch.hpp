#pragma once

#include <chrono>

#include "actors/runtime.hpp"

namespace weft::bench {

/// Seconds as the runtime's devices see them: virtual ones on a simulated machine.
class DeviceStopwatch {
 public:
  explicit DeviceStopwatch(const Runtime& runtime) : runtime_(runtime) {}
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(runtime_.now() - start_).count();
  }

 private:
  const Runtime& runtime_;
  const std::chrono::nanoseconds start_ = runtime_.now();
};

}  // namespace weft::bench
