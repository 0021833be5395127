#include "actors/simulated/engine.hpp"

#include <algorithm>

#include "actors/simulated/measured_kernels.hpp"
#include "framework/kernel_code.hpp"
#include "framework/trace.hpp"

namespace weft {

class SimulatedEngine::Lane final : public SimulatedLane, public Cpu {
 public:
  Lane(Setup setup, const DeviceModel& model, std::uint32_t units)
      : SimulatedLane(std::move(setup)), model_(model), units_(units) {}

  [[nodiscard]] std::size_t team_size() const override { return 1; }

 private:
  void share(std::size_t n, std::size_t, Range range) override { range.run(range.body, 0, n); }
  void execute(Op& op) override { op.code->cpu(*this, op); }
  void estimate(Op& op, Work& work) override {
    work.fixed = model_.gap_ns;
    const auto measured = model_.measured ? model_.measured->find(op) : std::nullopt;
    work.amount = measured ? measured->seconds : seconds_on(model_, op);
    work.uses.push_back({units_, 1});
    work.limit = 1;
  }

  const DeviceModel& model_;
  const std::uint32_t units_;  // a resource: all compute units together are 1
};

SimulatedEngine::SimulatedEngine(const SimulatedLane::Setup& setup, const DeviceModel& model)
    : simulation_(*setup.simulation), model_(model) {
  const std::uint32_t units = simulation_.share().add_resource(1);
  for (std::uint32_t i = 0; i < model.lanes; ++i) {
    const std::string lane = "compute " + std::to_string(i);
    SimulatedLane::Setup own = setup;
    own.name = setup.device + " " + lane;
    own.track = own.tracer ? own.tracer->add_track(setup.device, lane, TrackKind::Gpu) : 0;
    own.lost = &lost_;
    lanes_.push_back(std::make_unique<Lane>(std::move(own), model_, units));
  }
}

SimulatedEngine::~SimulatedEngine() = default;

void SimulatedEngine::issue(Op& op, std::uint32_t lane) {
  was_used_ = true;
  const VirtualTime::Ns came = simulation_.program().of(op.id);
  launcher_free_ = std::max({launcher_free_, simulation_.time().now(), came}) + model_.launch_ns;
  lanes_[lane]->enqueue(op, launcher_free_);
}

std::size_t SimulatedEngine::queued(std::uint32_t lane) const {
  return lanes_[lane]->queued();
}

}  // namespace weft
