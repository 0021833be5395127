#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace weft::bench {

/// What to find out.
enum class Aim : std::uint8_t {
  Dispatch,  ///< cost of an op
  Metg,      ///< how short ops may be
  HandOff,   ///< one op to an idle system and back
  Memory,    ///< bytes of a pending op
};

/// One measurement, made by a process of its own.
struct Measurement {
  Aim aim = Aim::Dispatch;
  std::string system;
  std::string graph;
  std::uint32_t width = 0;  ///< 0: the pattern's usual
  std::uint32_t ops = 0;
  std::uint32_t threads = 1;
  std::uint32_t repeats = 3;  ///< inside the process
  double op_ns = 0;           ///< how long each op computes; 0: empty
  bool trace = false;
  bool check = false;  ///< also make sure that every op ran once and in order
};

/// To and from the text that is handed to the process. Throws `std::invalid_argument` for text that
/// is not one.
std::string to_text(const Measurement& measurement);
Measurement measurement_from(const std::string& text);

/// Makes the measurement in this process and returns what came out, by aim:
/// dispatch `{"ns_per_op":[…],"cpu_ns_per_op","rss_before_bytes","peak_rss_bytes"}`,
/// metg `{"d50_ns","d80_ns","ladder":[[ns, efficiency]…]}` (null where it is never reached),
/// hand-off `{"round_trip_ns","after_idle_ns","idle_cores"}`,
/// memory `{"bytes_per_op","peak_rss_bytes"}`.
nlohmann::json measure(const Measurement& measurement);

}  // namespace weft::bench
