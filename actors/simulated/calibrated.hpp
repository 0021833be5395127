#pragma once

#include <string>
#include <vector>

#include "actors/simulated/calibration.hpp"
#include "actors/simulated/model.hpp"
#include "topology/machine.hpp"

namespace weft {

/// `model` with what was measured in place of what is known otherwise: launch, gap and the kernels
/// themselves; for kernels that were not measured, the best rates that those measured reached.
/// Rates of a socket's model are of one core.
DeviceModel calibrated(DeviceModel model, const Calibration::Device& device, Precision precision);

/// `machine` with measured rates and latencies, as `Measured`, of links of the same kind, width and
/// generation as measured ones, and of buses to sockets of the same model. What is measured already
/// stays as it is.
Machine with_calibrated_links(Machine machine, const Calibration& calibration);

/// Models of the sockets of `machine`, and of its GPUs if they are used, that were not measured,
/// each once.
std::vector<std::string> models_not_in(const Calibration& calibration, const Machine& machine,
                                       bool with_gpus);

}  // namespace weft
