#include "apps/experiment/engine.hpp"

#include "actors/runtime_options.hpp"
#include "topology/machine_edit.hpp"
#include "topology/shipped.hpp"

namespace weft::experiment {
namespace {

// Links as the topology says unless the option says otherwise: machines are to differ.
EmulatedOptions emulated_options(const std::string& text) {
  EmulatedOptions options = parse_emulated_options(text);
  if (("," + text).find(",link=") == std::string::npos) options.link_bytes_per_second = -1;
  return options;
}

}  // namespace

Machine machine_of(const MachineChoice& choice) {
  try {
    Machine machine = machine_from(choice.source);
    for (const std::string& thing : choice.remove) machine = without(machine, thing);
    for (const std::string& assignment : choice.set) machine = with_value(machine, assignment);
    return machine;
  } catch (const TopologyError& error) {
    throw SpecError(choice.where + ": machines: " + error.what());
  }
}

std::optional<RuntimeOptions> runtime_options(const Point& point, const Machine& machine,
                                              std::string& reason) {
  RuntimeOptions options;
  options.trace = true;
  options.emulated = emulated_options("");
  for (const auto& [name, value] : point.options) {
    if (name == "precision") options.precision = parse_precision(value);
    if (name == "p2p") options.p2p = value == "true";
    if (name == "relay") options.relay = value == "true";
    if (name == "data") options.data = parse_data(value);
    if (name == "emulated") options.emulated = emulated_options(value);
  }
  if (point.engine == Engine::Real) {
    if (!point.machine.is_live()) {
      reason = "the engine real runs on the live machine only";
      return std::nullopt;
    }
    return options;
  }
  if (!point.machine.is_live()) options.machine = machine;
  // A live machine without GPUs gets two emulated ones, as everywhere; another is what it is.
  const bool has_gpus = point.machine.is_live() || !machine.gpus.empty();
  options.gpus = has_gpus ? GpuMode::Emulated : GpuMode::None;
  options.simulate = point.engine == Engine::Simulated;
  if (*options.simulate) options.calibration = point.machine.calibration.read;
  return options;
}

std::unique_ptr<Runtime> runtime_of(const Point& point, RuntimeOptions options) {
  auto runtime = std::make_unique<Runtime>(options);
  if (point.engine != Engine::Real || runtime->gpu_count() == 0 ||
      runtime->engine_of(runtime->gpu(0)) != "emulated")
    return runtime;
  runtime.reset();
  options.gpus = GpuMode::None;
  return std::make_unique<Runtime>(std::move(options));
}

}  // namespace weft::experiment
