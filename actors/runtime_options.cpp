#include "actors/runtime_options.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "actors/simulated/calibration.hpp"
#include "topology/discover.hpp"

namespace weft {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::nullopt;
  return value;
}

bool flag(const char* name, bool otherwise) {
  const auto text = variable(name);
  if (!text) return otherwise;
  if (*text != "0" && *text != "1")
    throw DeviceError(std::string(name) + "=" + *text + ": wanted 0 or 1");
  return *text == "1";
}

}  // namespace

void parse_gpus(const std::string& text, RuntimeOptions& options) {
  const std::string emulated = "emulated";
  if (text == "auto") {
    options.gpus = GpuMode::Auto;
  } else if (text == "cuda") {
    options.gpus = GpuMode::Cuda;
  } else if (text == "none") {
    options.gpus = GpuMode::None;
  } else if (text == emulated) {
    options.gpus = GpuMode::Emulated;
  } else if (text.rfind(emulated + ":", 0) == 0) {
    const std::string count = text.substr(emulated.size() + 1);
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), value);
    if (error != std::errc() || end != count.data() + count.size() || value < 1 || value > 1024)
      throw DeviceError("gpus \"" + text + "\": wanted emulated:N with N from 1 to 1024");
    options.gpus = GpuMode::Emulated;
    options.emulated_gpus = value;
  } else {
    throw DeviceError("gpus \"" + text + "\": wanted auto, cuda, emulated:N or none");
  }
}

SimulatedData parse_data(const std::string& text) {
  if (text == "real") return SimulatedData::Real;
  if (text == "none") return SimulatedData::None;
  throw DeviceError("data \"" + text + "\": wanted real or none");
}

Precision parse_precision(const std::string& text) {
  for (Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Bf16})
    if (text == to_string(precision)) return precision;
  throw DeviceError("precision \"" + text + "\": wanted fp32, tf32 or bf16");
}

const char* to_string(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
      return "fp32";
    case Precision::Tf32:
      return "tf32";
    case Precision::Bf16:
      return "bf16";
  }
  return "?";
}

RuntimeOptions with_environment(RuntimeOptions options) {
  if (!options.gpus) {
    options.gpus = GpuMode::Auto;
    if (const auto text = variable("WEFT_GPUS")) parse_gpus(*text, options);
  }
  if (!options.emulated)
    options.emulated = parse_emulated_options(variable("WEFT_EMULATED").value_or(""));
  if (!options.simulate) options.simulate = flag("WEFT_SIMULATE", false);
  if (!options.data) options.data = parse_data(variable("WEFT_DATA").value_or("real"));
  if (!*options.simulate && options.simulated_scale && !options.simulated_scale->empty())
    throw DeviceError("scale \"" + *options.simulated_scale +
                      "\": only a simulated machine can be made faster");
  if (!options.simulated_scale)
    options.simulated_scale =
        *options.simulate ? variable("WEFT_SIMULATED_SCALE").value_or("") : "";
  if (!options.simulated_report)
    options.simulated_report = variable("WEFT_SIMULATED_REPORT").value_or("");
  if (options.calibration && !*options.simulate)
    throw DeviceError("calibration: only simulated devices use it; simulate, or leave it out");
  if (!options.calibration && *options.simulate)
    if (const auto path = variable("WEFT_CALIBRATION"))
      options.calibration = std::make_shared<Calibration>(read_calibration_file(*path));
  if (!options.placement) options.placement = variable("WEFT_PLACEMENT").value_or("auto");
  if (!options.run_costs) options.run_costs = variable("WEFT_RUN_COSTS").value_or("");
  if (!options.memory) options.memory = variable("WEFT_MEMORY").value_or("");
  if (!options.socket_lanes)
    options.socket_lanes = parse_socket_lanes(variable("WEFT_LANES").value_or("cores"));
  if (!options.spill) options.spill = variable("WEFT_SPILL").value_or("");
  if (!options.serial) options.serial = flag("WEFT_SERIAL", false);
  if (!options.precision)
    options.precision = parse_precision(variable("WEFT_PRECISION").value_or("fp32"));
  if (!options.tune_products) options.tune_products = flag("WEFT_TUNE", false);
  if (!options.bundles && variable("WEFT_BUNDLES")) options.bundles = flag("WEFT_BUNDLES", true);
  if (!options.p2p) options.p2p = flag("WEFT_P2P", true);
  if (options.cuda_lanes < 1 || options.cuda_lanes > 64)
    throw DeviceError("cuda_lanes " + std::to_string(options.cuda_lanes) + ": wanted 1 to 64");
  if (!options.watchdog) {
    double seconds = 30;
    if (const auto text = variable("WEFT_WATCHDOG")) {
      const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
      if (error != std::errc() || end != text->data() + text->size() || seconds < 0)
        throw DeviceError("WEFT_WATCHDOG=" + *text + ": wanted seconds, 0 for never");
    }
    options.watchdog = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * seconds));
  }
  if (!options.machine) {
    const auto text = variable("WEFT_MACHINE");
    if (text) options.machine = parse_machine(*text);
  }
  return options;
}

}  // namespace weft
