#pragma once

#include <memory>
#include <vector>

#include "actors/emulated/lane.hpp"
#include "framework/engine.hpp"

namespace weft {

/// A GPU made of host threads: `options.compute_lanes` in-order lanes, each an actor of its own.
class EmulatedEngine final : public Engine {
 public:
  /// `options` is borrowed. The caller gives each lane's body a thread.
  EmulatedEngine(const std::string& device, const EmulatedOptions& options, Tracer* tracer);

  [[nodiscard]] Domain domain() const override { return Domain::Emulated; }
  [[nodiscard]] std::uint32_t lanes() const override {
    return static_cast<std::uint32_t>(lanes_.size());
  }
  void issue(Op& op, std::uint32_t lane) override { lanes_[lane]->push(op); }
  [[nodiscard]] std::size_t queued(std::uint32_t lane) const override {
    return lanes_[lane]->queued();
  }

  EmulatedLane& lane(std::uint32_t index) { return *lanes_[index]; }
  bool lose() override {
    lost_.store(true, std::memory_order_release);
    return true;
  }

 private:
  std::atomic<bool> lost_{false};
  std::vector<std::unique_ptr<EmulatedLane>> lanes_;
};

}  // namespace weft
