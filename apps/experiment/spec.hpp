#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/experiment/device_choice.hpp"
#include "apps/workloads/values.hpp"

namespace weft {
struct Calibration;
}

namespace weft::experiment {

/// What simulated points of a machine take their times from.
struct CalibrationChoice {
  std::string file;                         ///< as the spec has it; empty: none
  std::shared_ptr<const Calibration> read;  ///< what is in it; null: none
};

/// A spec that cannot be used. `what()` is one line: `FILE:LINE: KEY: what is wrong`, and what is
/// allowed.
class SpecError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A machine to run on.
struct MachineChoice {
  std::string source = "live";           ///< as `--machine`, or `live`
  std::vector<std::string> set, remove;  ///< as `weft topo` has them; what is removed goes first
  CalibrationChoice calibration;         ///< its own, or the spec's
  std::string label;                     ///< in results; unique
  std::string where;                     ///< `FILE:LINE` of the spec

  [[nodiscard]] bool is_live() const { return source == "live" && set.empty() && remove.empty(); }
};

enum class Engine : std::uint8_t {
  Real,       ///< this machine's processors and GPUs
  Emulated,   ///< GPUs made of host threads; copies take the time that the topology says
  Simulated,  ///< virtual time
};
const char* to_string(Engine engine);

/// A name with the values it goes through.
using Sweep = std::pair<std::string, std::vector<std::string>>;

struct WorkloadChoice {
  std::string name;
  std::vector<Sweep> parameters;
  std::vector<DeviceChoice> devices;
};

/// What an experiment is: everything that is run is in the product of these lists.
struct Spec {
  std::string name;
  std::string file, text;  ///< where it was read from, and all of it
  std::vector<MachineChoice> machines;
  std::vector<Engine> engines;
  std::vector<WorkloadChoice> workloads;
  std::vector<Sweep> options;
  int repeats = 3;
};

/// Throws `SpecError`.
Spec read_spec(const std::string& file);
/// The same for the text of a file called `file`.
Spec parse_spec(const std::string& text, const std::string& file);

/// One thing to run, `repeats` times.
struct Point {
  MachineChoice machine;
  Engine engine = Engine::Emulated;
  std::string workload;
  workloads::Values values;
  DeviceChoice devices;
  /// The spec's, and of a simulated point `calibration`, the file's name, if it has one.
  std::vector<std::pair<std::string, std::string>> options;

  /// Names this point among all of a spec.
  [[nodiscard]] std::string key() const;
};

/// The product, in order of the spec; the last list of a workload changes fastest.
std::vector<Point> expand(const Spec& spec);

}  // namespace weft::experiment
