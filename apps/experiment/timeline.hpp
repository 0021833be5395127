#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/trace.hpp"

namespace weft::experiment {

/// What ran where and when in one run, small enough for a report: spans that a picture could not
/// tell apart are one bar.
struct Timeline {
  struct Bar {
    double start = 0, end = 0;  ///< seconds from the first span's start
    std::uint32_t name = 0;     ///< in `names`
  };
  struct Lane {
    std::string actor, lane;
    TrackKind kind = TrackKind::Socket;
    double busy = 0;  ///< share of the time, from 0 to 1
    std::vector<Bar> bars;
    /// Links: share of each of `kBins` equal parts of the time in which it carried something.
    std::vector<double> use;
  };
  static constexpr std::size_t kBins = 100;

  double seconds = 0;  ///< from the first start to the last end
  std::vector<std::string> names;
  std::vector<Lane> lanes;  ///< those with a span, in order of the tracks
};

/// Of a recording.
Timeline timeline_of(const TraceData& data);

}  // namespace weft::experiment
