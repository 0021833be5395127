#pragma once

#include <cstdint>
#include <memory>

#include "actors/fabric_builder.hpp"
#include "actors/simulated/calibration.hpp"
#include "actors/simulated/engine.hpp"
#include "actors/simulated/scale.hpp"
#include "actors/simulated/simulation.hpp"
#include "actors/simulated/socket.hpp"

namespace weft {

/// What makes the devices, memories and links of a machine simulated ones. Borrows everything but
/// `scale`, which has been applied to the machine.
class SimulatedParts {
 public:
  SimulatedParts(const Machine& machine, const RuntimeOptions& options, Simulation& simulation,
                 Tracer* tracer, SimulatedScale scale);

  /// `domain`: of GPUs, if there are any.
  [[nodiscard]] Realisation realisation(Domain domain) const;
  [[nodiscard]] std::unique_ptr<SimulatedSocket> make_socket(SocketId socket, Place& place) const;
  [[nodiscard]] std::unique_ptr<SimulatedEngine> make_engine(GpuId gpu, const Place& place) const;
  /// Whether anything moved over each link, in either direction.
  [[nodiscard]] std::vector<bool> used_links() const;

 private:
  [[nodiscard]] SimulatedLane::Setup setup(const std::string& device) const;
  // Of the calibration; null: there is none, or it has no such device.
  [[nodiscard]] const Calibration::Device* find(const std::string& model, bool is_gpu) const;

  const Machine& machine_;
  const RuntimeOptions& options_;
  Simulation& simulation_;
  Tracer* const tracer_;
  const SimulatedScale scale_;
  std::uint32_t first_hop_ = 0;  // resource of link 0 forward
};

}  // namespace weft
