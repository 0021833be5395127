#include "actors/simulated/model.hpp"

#include <algorithm>

#include "actors/emulated/options.hpp"
#include "framework/kernel_code.hpp"
#include "framework/op_cost.hpp"

namespace weft {

double seconds_on(const DeviceModel& model, Op& op) {
  const Cost cost = cost_of(op);
  const double peak = is_fp64(op) ? model.fp64 : op.code->is_product ? model.product : model.fp32;
  const double compute = peak > 0 ? cost.flops / (peak * model.efficiency) : 0;
  const double memory = model.memory > 0 ? cost.bytes / (model.memory * model.efficiency) : 0;
  return std::max(compute, memory);
}

DeviceModel gpu_model(const Machine& machine, GpuId gpu, Precision precision,
                      const EmulatedOptions& options) {
  (void)machine, (void)gpu, (void)precision;
  DeviceModel model;
  model.fp64 = 9.7e12;
  model.fp32 = model.product = 19.5e12;
  model.memory = 1.5e12;
  model.efficiency = 0.8;
  model.launch_ns = 3000;
  model.gap_ns = 1500;
  model.lanes = options.compute_lanes;
  if (options.flops_per_second > 0 || options.memory_bytes_per_second > 0) {
    model.fp64 = model.fp32 = model.product = options.flops_per_second;
    model.memory = options.memory_bytes_per_second;
    model.efficiency = 1;
    model.launch_ns = 0;
    model.gap_ns = options.launch.count();
  }
  return model;
}

DeviceModel core_model(const Machine& machine, SocketId socket) {
  (void)machine, (void)socket;
  DeviceModel model;
  model.fp64 = 20e9;
  model.fp32 = model.product = 40e9;
  model.memory = 10e9;
  model.efficiency = 0.8;
  model.gap_ns = 300;
  return model;
}

}  // namespace weft
