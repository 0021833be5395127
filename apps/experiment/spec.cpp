#include "apps/experiment/spec.hpp"

#include <functional>

#include "apps/workloads/workload.hpp"

namespace weft::experiment {
namespace {

using Choice = std::vector<std::pair<std::string, std::string>>;

// Every choice of one value of each sweep; the last changes fastest.
void for_each_choice(const std::vector<Sweep>& sweeps,
                     const std::function<void(const Choice&)>& visit, Choice chosen = {}) {
  if (chosen.size() == sweeps.size()) return visit(chosen);
  const auto& [name, values] = sweeps[chosen.size()];
  chosen.emplace_back(name, "");
  for (const std::string& value : values) {
    chosen.back().second = value;
    for_each_choice(sweeps, visit, chosen);
  }
}

// What is chosen for a point, with what it takes its times from: results name both.
Choice with_calibration(Choice options, const MachineChoice& machine, Engine engine) {
  if (engine == Engine::Simulated && machine.calibration.read)
    options.emplace_back("calibration", machine.calibration.file);
  return options;
}

std::string choice_text(const Choice& choice) {
  std::string text;
  for (const auto& [name, value] : choice) text += (text.empty() ? "" : ",") + name + "=" + value;
  return text;
}

}  // namespace

const char* to_string(Engine engine) {
  switch (engine) {
    case Engine::Real:
      return "real";
    case Engine::Emulated:
      return "emulated";
    case Engine::Simulated:
      return "simulated";
  }
  return "?";
}

std::string Point::key() const {
  return machine.label + " | " + to_string(engine) + " | " + workload + " | " + values.to_string() +
         " | " + devices.text() + " | " + choice_text(options);
}

std::vector<Point> expand(const Spec& spec) {
  std::vector<Point> points;
  for (const WorkloadChoice& choice : spec.workloads)
    for (const MachineChoice& machine : spec.machines)
      for (const Engine engine : spec.engines)
        for_each_choice(spec.options, [&](const Choice& chosen) {
          const Choice options = with_calibration(chosen, machine, engine);
          for (const DeviceChoice& devices : choice.devices)
            for_each_choice(choice.parameters, [&](const Choice& parameters) {
              workloads::Values values(workloads::find(choice.name).parameters);
              for (const auto& [name, value] : parameters) values.set(name, value);
              points.push_back({machine, engine, choice.name, values, devices, options});
            });
        });
  return points;
}

}  // namespace weft::experiment
