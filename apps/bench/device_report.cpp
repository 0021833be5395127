#include "apps/bench/device_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "apps/common/output.hpp"
#include "topology/describe.hpp"

namespace weft::bench {

std::vector<std::size_t> sizes(std::size_t least, std::size_t most, std::size_t factor) {
  std::vector<std::size_t> made;
  for (std::size_t bytes = least; bytes < most; bytes *= factor) made.push_back(bytes);
  made.push_back(most);
  return made;
}

std::size_t usual_largest(const Runtime& runtime) {
  for (std::size_t i = 0; i < runtime.gpu_count(); ++i)
    if (runtime.engine_of(runtime.gpu(i)) == "emulated") return std::size_t{16} << 20;
  return std::size_t{1} << 30;
}

std::string format_bytes(std::size_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g %s", value, kUnits[unit]);
  return text;
}

std::string format_figure(double value) {
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

void print_devices(const apps::Output& output, const Runtime& runtime, const std::string& bench) {
  std::string devices;
  bool emulated = false;
  for (const Device& device : runtime.devices()) {
    const std::string engine = runtime.engine_of(device);
    devices += (devices.empty() ? "" : ", ") + device.name() + " (" + engine + ")";
    emulated = emulated || engine == "emulated";
  }
  output.print("weft bench %s, weft %s, %s\n%s\n%s\n", bench.c_str(), WEFT_VERSION, WEFT_BUILD,
               summary(runtime.machine()).c_str(), devices.c_str());
  if (emulated) output.print("emulated GPUs are host threads: these figures are not a GPU's\n");
}

nlohmann::ordered_json document_head(const Runtime& runtime, const std::string& bench,
                                     std::uint32_t repeats) {
  nlohmann::ordered_json document{{"bench", bench},
                                  {"machine", summary(runtime.machine())},
                                  {"build", std::string(WEFT_VERSION) + ", " + WEFT_BUILD},
                                  {"repeats", repeats}};
  document["devices"] = nlohmann::ordered_json::array();
  for (const Device& device : runtime.devices())
    document["devices"].push_back({{"id", device.name()}, {"engine", runtime.engine_of(device)}});
  document["results"] = nlohmann::ordered_json::array();
  return document;
}

void put(nlohmann::ordered_json& entry, const std::string& key, const Spread& spread) {
  entry[key] = spread.median;
  entry[key + "_min"] = spread.least;
  entry[key + "_max"] = spread.most;
}

}  // namespace weft::bench
