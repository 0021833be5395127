#include "actors/simulated/model.hpp"

#include <algorithm>

#include "actors/emulated/options.hpp"
#include "framework/kernel_code.hpp"
#include "framework/op_cost.hpp"
#include "topology/device_figures.hpp"

namespace weft {
namespace {

// Shares of the peaks that good kernels reach, where nothing was measured. Assumed: large fp32
// products of cuBLAS reach 76 to 80 % of an H200's peak, streaming kernels 85 to 90 %.
constexpr double kEfficiency = 0.8;
// The launching thread's time for a kernel and its events; measured on an H200's host.
constexpr std::int64_t kLaunchNs = 3300;
// From one op to the next on a core of a socket: `weft bench dispatch`.
constexpr std::int64_t kHandOverNs = 300;
// What one core reads and writes alone. Assumed: a desktop's core streams at 10 to 20 GB/s.
constexpr double kCoreMemory = 12e9;

}  // namespace

double seconds_on(const DeviceModel& model, Op& op) {
  const Cost cost = cost_of(op);
  const bool is_product = op.code->is_product;
  const double peak = is_fp64(op) ? (is_product ? model.fp64_product : model.fp64)
                                  : (is_product ? model.product : model.fp32);
  const double compute = peak > 0 ? cost.flops / (peak * model.efficiency) : 0;
  const double memory = model.memory > 0 ? cost.bytes / (model.memory * model.efficiency) : 0;
  return std::max(compute, memory);
}

DeviceModel gpu_model(const Machine& machine, GpuId gpu, Precision precision,
                      const EmulatedOptions& options) {
  DeviceModel model;
  model.lanes = options.compute_lanes;
  if (options.flops_per_second > 0 || options.memory_bytes_per_second > 0) {
    model.fp64 = model.fp32 = model.product = model.fp64_product = options.flops_per_second;
    model.memory = options.memory_bytes_per_second;
    model.gap_ns = options.launch.count();
    return model;
  }
  const DeviceFigures figures = gpu_figures(machine, gpu);
  model.fp64 = figures.fp64;
  model.fp64_product = std::max(figures.fp64, figures.fp64_matrix);
  model.fp32 = figures.fp32;
  model.product = std::max(figures.fp32, figures.fp32_matrix);
  if (precision == Precision::Tf32) model.product = std::max(model.product, figures.tf32);
  if (precision == Precision::Bf16) model.product = std::max(model.product, figures.bf16);
  model.memory = figures.memory_bytes_per_second;
  model.efficiency = kEfficiency;
  model.launch_ns = kLaunchNs;
  model.gap_ns = figures.launch_gap.count();
  return model;
}

DeviceModel core_model(const Machine& machine, SocketId socket) {
  const CpuFigures figures = cpu_figures(machine, socket);
  DeviceModel model;
  model.fp64 = model.fp64_product = figures.fp64_per_core;
  model.fp32 = model.product = figures.fp32_per_core;
  model.memory = std::min(kCoreMemory, figures.memory_bytes_per_second);
  model.efficiency = kEfficiency;
  model.gap_ns = kHandOverNs;
  return model;
}

}  // namespace weft
