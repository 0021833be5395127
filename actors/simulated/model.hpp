#pragma once

#include <cstdint>
#include <memory>

#include "framework/cuda.hpp"
#include "framework/op.hpp"
#include "topology/machine.hpp"

namespace weft {

struct EmulatedOptions;
class MeasuredKernels;

/// How fast one simulated device is. Rates of kernels are peaks times `efficiency`.
struct DeviceModel {
  double fp64 = 0, fp32 = 0;   ///< flop/s
  double product = 0;          ///< flop/s of fp32 matrix products, in the chosen precision
  double fp64_product = 0;     ///< flop/s of fp64 matrix products
  double memory = 0;           ///< bytes/s
  double efficiency = 1;       ///< share of the peaks that kernels reach
  std::int64_t launch_ns = 0;  ///< of the thread that launches, an op
  std::int64_t gap_ns = 0;     ///< between two kernels of a lane
  std::uint32_t lanes = 1;     ///< in-order lanes; a socket's cores
  std::shared_ptr<const MeasuredKernels> measured;  ///< go before the rates; null: none
};

/// Seconds that `op` takes by the rates with all of the device, or one core of a socket, to itself,
/// without launch and gap.
double seconds_on(const DeviceModel& model, Op& op);

/// The models of a GPU and of one core of a socket, by published figures of what they are called,
/// or assumed ones; what `options` says goes first.
DeviceModel gpu_model(const Machine& machine, GpuId gpu, Precision precision,
                      const EmulatedOptions& options);
DeviceModel core_model(const Machine& machine, SocketId socket);

}  // namespace weft
