#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/mlp/checkpoint.hpp"
#include "apps/mlp/dataset.hpp"
#include "apps/mlp/network.hpp"

namespace weft::workloads {

/// Trains the perceptron from `start` on the samples in `order`, serially and in double precision,
/// as far as some 10^9 operations reach, and holds `end` and `loss` against it. Where the epoch is
/// longer than that, the loss is held against that of guessing instead. Returns what was checked.
/// Throws `WrongResult`.
std::string check_epoch(const mlp::Dataset& data, const mlp::Hyper& hyper,
                        const std::vector<std::uint32_t>& order, const mlp::Parameters& start,
                        const mlp::Parameters& end, double loss);

}  // namespace weft::workloads
