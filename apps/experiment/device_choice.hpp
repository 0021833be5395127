#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/runtime.hpp"

namespace weft::experiment {

/// Which devices of a machine: `all`, `gpus`, `sockets`, `2 gpus`, `1 socket`, `gpu0,socket0`.
class DeviceChoice {
 public:
  DeviceChoice() = default;
  /// Throws `std::invalid_argument` that says what may be given.
  explicit DeviceChoice(const std::string& text);

  [[nodiscard]] const std::string& text() const { return text_; }

  /// Those of `runtime`; empty if it does not have them, and then `reason` says so.
  [[nodiscard]] std::vector<Device> of(const Runtime& runtime, std::string& reason) const;

 private:
  std::string text_ = "all";
  bool wants_sockets_ = true, wants_gpus_ = true;
  std::size_t count_ = 0;           // 0: all of them
  std::vector<std::string> names_;  // not empty: these
};

}  // namespace weft::experiment
