#pragma once

#include <string>

#include "support/catch.hpp"

namespace weft::test {
std::string no_gpu_reason();
}

/// Ends the test case with a printed reason where there is no CUDA device.
#define WEFT_NEEDS_GPU()                                                           \
  if (const std::string reason = ::weft::test::no_gpu_reason(); !reason.empty()) { \
    WARN("skipped, no GPU: " + reason);                                            \
    return;                                                                        \
  }                                                                                \
  static_cast<void>(0)
