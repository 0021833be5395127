#pragma once

#include <cstdint>

namespace weft::mlp {

/// Number `counter` of stream `seed`: the same wherever and in whatever order it is asked for.
/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

/// Uniform in [-limit, limit), from the upper 24 bits.
constexpr float random_symmetric(std::uint64_t seed, std::uint64_t counter, float limit) {
  const auto unit = static_cast<float>(random_bits(seed, counter) >> 40) * 0x1p-24f;
  return limit * (2 * unit - 1);
}

/// A stream of its own for each purpose: mixing keeps (1, 2) and (2, 1) apart.
constexpr std::uint64_t stream(std::uint64_t seed, std::uint64_t purpose) {
  return random_bits(random_bits(seed, 0x77656674), purpose);
}

}  // namespace weft::mlp
