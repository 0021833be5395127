#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <weft/weft.hpp>

#include "apps/workloads/values.hpp"

namespace weft::workloads {

/// Data that devices send each other: whole numbers so small that sums of them are exact in fp32.
using Parts = std::vector<Tensor<float>>;

/// Element i of the part that is filled from `seed`.
constexpr std::uint64_t part_element(std::uint64_t seed, std::uint64_t i) {
  constexpr std::uint64_t kRange = 1 << 10;
  return (seed * 7919 + i * 31) % kRange;
}

/// Fills a part. Order: seed, part.
const Kernel<std::uint64_t, Out<float>>& fill_part();
/// A part that an op on `device` fills.
Tensor<float> filled_part(const Device& device, std::uint64_t seed, std::int64_t elements);

/// `elements` and `rounds`.
std::vector<Parameter> part_parameters(const std::string& elements_of);

}  // namespace weft::workloads
