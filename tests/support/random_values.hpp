#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

namespace weft::test {

/// Floating point in [-1, 1] in steps of 1e-6; integers over their whole range.
template <class T>
std::vector<T> random_values(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(static_cast<double>(random() % 2'000'001) / 1e6 - 1);
    else
      value = static_cast<T>(random());
  }
  return values;
}

}  // namespace weft::test
