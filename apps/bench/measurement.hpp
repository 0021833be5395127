#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weft::bench {

/// What to find out.
enum class Aim : std::uint8_t {
  Dispatch,  ///< cost of an op
  Metg,      ///< how short ops may be
  HandOff,   ///< one op to an idle system and back
  Memory,    ///< bytes of a pending op
  Matmul,    ///< a socket's large product
  Overlap,   ///< emulated GPUs and links at the same time
};

/// One measurement, made by a process of its own.
struct Measurement {
  Aim aim = Aim::Dispatch;
  std::string system;
  std::string graph;
  std::uint32_t width = 0;  ///< 0: the pattern's usual
  std::uint32_t ops = 0;
  std::uint32_t threads = 1;
  std::uint32_t repeats = 3;    ///< inside the process
  double op_ns = 0;             ///< how long each op computes; 0: empty
  std::uint32_t admission = 0;  ///< ops weft takes in ahead of execution; 0: as usual
  bool trace = false;
  bool check = false;  ///< also make sure that every op ran once and in order
};

/// What came out of a measurement: samples by name. An empty sample: a figure that was not reached.
using Figures = std::map<std::string, std::vector<double>>;

/// To and from the text that is handed to the process and comes back from it. Throws
/// `std::invalid_argument` for text that is not one.
std::string to_text(const Measurement& measurement);
Measurement measurement_from(const std::string& text);
std::string to_text(const Figures& figures);
Figures figures_from(const std::string& text);

/// Makes the measurement in this process. By aim:
/// dispatch `ns_per_op` (a value per repeat), `cpu_ns_per_op`, `rss_before_bytes`,
/// `peak_rss_bytes`; metg `d50_ns`, `d80_ns`, and the ladder as `rung_ns`, `rung_efficiency`;
/// hand-off `round_trip_ns`, `after_idle_ns`, `idle_cores`; memory `bytes_per_op`,
/// `peak_rss_bytes`; matmul `flops_per_second`; overlap see `measure_overlap`.
Figures measure(const Measurement& measurement);

/// `flops_per_second` of products of two matrices of `ops` rows and columns on `threads` cores: of
/// `weft-host`, or of `openblas` with its own threads.
Figures measure_matmul(const Measurement& measurement);

/// Seconds of `both_at_once` and `longer_one`, `run_and_copy`, `run`, `copy`, with `ops` kernels of
/// 1 ms on emulated GPUs.
Figures measure_overlap(const Measurement& measurement);

}  // namespace weft::bench
