#pragma once

#include <cstdint>
#include <vector>
#include <weft/weft.hpp>

#include "apps/workloads/workload.hpp"
#include "framework/cuda.hpp"

namespace weft::workloads {

// What the two experiments of "Automatic Parallelism" (Dive into Deep Learning, 13.3,
// https://d2l.ai/chapter_computational-performance/auto-parallelism.html) share: the same product,
// many times on each device.

using Matrices = std::vector<Tensor<float>>;

/// `count` products x·x on each device, in turn.
Matrices products(const std::vector<Device>& devices, const Tensor<float>& x, std::int64_t count);

/// Computes one on each device and waits, so that x is where it is needed.
void warm(const std::vector<Device>& devices, const Tensor<float>& x);

/// How far inputs may be rounded: the program does not see what the runtime's options ask of CUDA
/// devices; others compute in fp32.
Precision widest_precision(const Context& context);

/// `n` and `kernels`.
std::vector<Parameter> product_parameters();
/// Of all products of a run.
double product_flops(const Context& context);
std::uint64_t product_count(const Context& context);

}  // namespace weft::workloads
