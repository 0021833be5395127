#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "actors/simulated/lane.hpp"
#include "actors/simulated/model.hpp"
#include "framework/cpu.hpp"
#include "framework/engine.hpp"

namespace weft {

/// A GPU in virtual time: in-order lanes whose kernels share its compute units. Its actor's thread
/// takes the model's launch time for each op, one after the other.
class SimulatedEngine final : public Engine {
 public:
  /// `setup` as for lanes, with the device's name as `name`.
  SimulatedEngine(const SimulatedLane::Setup& setup, const DeviceModel& model);
  ~SimulatedEngine() override;

  [[nodiscard]] Domain domain() const override { return Domain::Emulated; }
  [[nodiscard]] std::uint32_t lanes() const override {
    return static_cast<std::uint32_t>(lanes_.size());
  }
  void issue(Op& op, std::uint32_t lane) override;
  [[nodiscard]] std::size_t queued(std::uint32_t lane) const override;
  /// Whether any op was issued to it.
  [[nodiscard]] bool was_used() const { return was_used_; }
  bool lose() override {
    lost_.store(true, std::memory_order_release);
    return true;
  }

 private:
  class Lane;
  Simulation& simulation_;
  const DeviceModel model_;
  std::atomic<bool> lost_{false};
  std::vector<std::unique_ptr<Lane>> lanes_;
  VirtualTime::Ns launcher_free_ = 0;
  bool was_used_ = false;
};

}  // namespace weft
