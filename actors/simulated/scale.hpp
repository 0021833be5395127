#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/simulated/model.hpp"
#include "topology/machine.hpp"

namespace weft {

/// What of a simulated machine is so many times as fast as it is: rates are multiplied, times
/// divided. Written as `TARGET=FACTOR`, with commas between:
///
///     link:pcie=2               the rates of all links of a kind
///     link:pcie:gpu-socket=2    of those of them that join such things
///     link3=2                   of one link
///     link:nvlink.latency=2     latencies, of any of these
///     gpu.flops=2               all GPUs' rate of computing; gpu.memory, of their memory
///     gpu.launch=2              what launching a kernel costs, and the gap between two
///     gpu1.flops=2              of one GPU; gpu:MODEL.flops: of all of a model
///     socket.cores=2            the rates of sockets' cores; socket0.cores: of one socket
///     program.submission=2      what submitting an op costs the program
///
/// A comma or equals sign in a model's name is written as a blank.
class SimulatedScale {
 public:
  SimulatedScale() = default;
  /// Throws `DeviceError` for what is not understood and for targets that `machine` does not have.
  SimulatedScale(const std::string& text, const Machine& machine);

  /// The machine with its links' rates and latencies changed.
  [[nodiscard]] Machine applied(Machine machine) const;
  /// The factor of a link's rate, for rates that are not the machine's own.
  [[nodiscard]] double rate_factor(const Machine& machine, std::uint32_t link) const;
  /// The model of a GPU or of a socket's core, changed.
  [[nodiscard]] DeviceModel applied(DeviceModel model, const Machine& machine, Node device) const;
  /// The factor of the program's submissions.
  [[nodiscard]] double submission_factor() const;

 private:
  struct Change {
    std::string of, what;  // `link:pcie`, `gpu1`; `flops`, or nothing: a link's rate
    double factor = 1;
  };
  [[nodiscard]] double factor(const std::vector<std::string>& names, const char* what) const;

  std::vector<Change> changes_;
};

/// Which links, GPUs and sockets of a machine a run used, by their ids.
struct SimulatedUse {
  std::vector<bool> links, gpus, sockets;
};

/// What might be made faster where so much was used: links by kind, and by what they join where
/// that differs within a kind; GPUs by model; cores; submissions. In this order.
std::vector<std::string> scale_targets(const Machine& machine, const SimulatedUse& use);

/// Whether `text` is written like a target. Throws `DeviceError` saying what would be right.
void check_scale_target(const std::string& text);
/// Whether `machine` has what the target names.
bool has_scale_target(const Machine& machine, const std::string& target);

}  // namespace weft
