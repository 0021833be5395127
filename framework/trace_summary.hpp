#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/trace.hpp"

namespace weft {

/// What a recording says about a run. Times in seconds, shares from 0 to 1.
struct TraceSummary {
  struct Lane {
    std::string actor, lane;
    TrackKind kind = TrackKind::Socket;
    double busy_seconds = 0;  ///< in which it had a span
    double busy = 0;          ///< share of the wall time
    std::uint64_t spans = 0;
    std::uint64_t bytes = 0;  ///< moved by copies
  };
  struct Actor {
    std::string actor;
    TrackKind kind = TrackKind::Socket;
    std::uint32_t lanes = 0;
    double busy_seconds = 0;  ///< in which at least one of its lanes had a span
    double busy = 0;          ///< the same as a share of the wall time
    double load = 0;          ///< mean over its lanes of their busy share
    std::uint64_t spans = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<Lane> lanes;    ///< those of devices, links and collectives, in order of the tracks
  std::vector<Actor> actors;  ///< in order of their first track

  double wall_seconds = 0;     ///< from the first start of a span to the last end
  double compute_seconds = 0;  ///< in which at least one device ran a kernel

  double transfer_seconds = 0;  ///< in which at least one link carried something
  double hidden_seconds = 0;    ///< the part of it in which a device ran a kernel
  double exposed_seconds = 0;   ///< the rest of it
  double hidden = 1;            ///< share hidden; 1 if nothing was transferred
  std::uint64_t transfer_bytes = 0;

  /// The longest chain of ops, each waiting for the one before: their run times added up.
  double critical_path_seconds = 0;
  std::vector<std::uint64_t> critical_path;  ///< its ops, first to last
  struct Part {
    std::string actor;
    double seconds = 0;
  };
  std::vector<Part> critical_actors;  ///< whose time it is, the largest part first

  /// No order of these ops on these lanes is faster: the most that one lane had to do, or the
  /// critical path if that is longer.
  double lower_bound_seconds = 0;

  std::uint64_t ops = 0, failed = 0;
};

/// What ran from `from_ns` to `to_ns` on the recording's clock; spans that reach beyond are cut.
/// The causes stay, submissions outside go.
[[nodiscard]] TraceData between(const TraceData& data, std::int64_t from_ns, std::int64_t to_ns);

/// Pure; any order of spans. An op with spans on several lanes counts once, from its first start to
/// its last end.
[[nodiscard]] TraceSummary summarise(const TraceData& data);

/// The summary for a person: a line per actor, then what overlapped. Ends with a newline.
[[nodiscard]] std::string describe(const TraceSummary& summary);

}  // namespace weft
