#include "actors/emulated/engine.hpp"

#include "framework/trace.hpp"

namespace weft {

EmulatedEngine::EmulatedEngine(const std::string& device, const EmulatedOptions& options,
                               Tracer* tracer) {
  for (std::uint32_t i = 0; i < options.compute_lanes; ++i) {
    const std::string lane = "compute " + std::to_string(i);
    EmulatedLane::Setup setup;
    setup.name = device + " " + lane;
    setup.device = device;
    setup.options = &options;
    setup.tracer = tracer;
    setup.track = tracer ? tracer->add_track(device, lane, TrackKind::Gpu) : 0;
    setup.lost = &lost_;
    lanes_.push_back(std::make_unique<EmulatedLane>(std::move(setup)));
  }
}

}  // namespace weft
