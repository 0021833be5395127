#pragma once

// Catch2 2.x (Debian 12) and 3.x behind one include. Both may be on a machine: CMake says which it
// found.
#if WEFT_CATCH2_MAJOR >= 3
#include <catch2/catch_all.hpp>
using Catch::Approx;
#define WEFT_CONTAINS_TEXT Catch::Matchers::ContainsSubstring
#else
#include <catch2/catch.hpp>
#define WEFT_CONTAINS_TEXT Catch::Matchers::Contains
#endif

#include <string>

/// Matches texts that contain `part`, with either Catch2.
inline auto contains_text(const std::string& part) {
  return WEFT_CONTAINS_TEXT(part);
}
