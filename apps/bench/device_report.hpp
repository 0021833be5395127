#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "actors/runtime.hpp"
#include "apps/bench/spread.hpp"
#include "apps/common/options.hpp"

namespace weft::apps {
class Output;
}

namespace weft::bench {

/// What all benchmarks of devices and links take. They run in one process, on one runtime.
struct DeviceBenchOptions {
  apps::CommonOptions common;
  std::uint32_t repeats = 5;  ///< timed runs of each case, after one that warms up
};

/// Sizes in bytes from `least` to `most`, each `factor` times the one before; `most` is the last.
std::vector<std::size_t> sizes(std::size_t least, std::size_t most, std::size_t factor);

/// 1 GiB where all GPUs are real ones; 16 MiB where some are emulated, which takes the host's time.
std::size_t usual_largest(const Runtime& runtime);

/// `4 B`, `64 KiB`, `1 GiB`: powers of 1024, up to 3 digits.
std::string format_bytes(std::size_t bytes);
/// `%.*f` with so many decimals that 3 digits show: `0.52`, `55.3`, `104`.
std::string format_figure(double value);

/// Which machine, build and engines the figures are of, for a person.
void print_devices(const apps::Output& output, const Runtime& runtime, const std::string& bench);
/// The same as the head of a JSON document: `bench`, `machine`, `build`, `devices` with their
/// engines, and an empty `results`.
nlohmann::ordered_json document_head(const Runtime& runtime, const std::string& bench,
                                     std::uint32_t repeats);
/// Adds `KEY`, `KEY_min` and `KEY_max` to `entry`.
void put(nlohmann::ordered_json& entry, const std::string& key, const Spread& spread);

}  // namespace weft::bench
