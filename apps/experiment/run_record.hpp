#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/experiment/spec.hpp"
#include "apps/experiment/timeline.hpp"
#include "apps/workloads/workload.hpp"

namespace weft::experiment {

/// What a recording says about a run, as `TraceSummary` has it.
struct Activity {
  struct Actor {
    std::string name;
    TrackKind kind = TrackKind::Socket;
    double busy = 0;  ///< share of the time, from 0 to 1
  };
  double transfer_seconds = 0, exposed_seconds = 0;
  double hidden = 1;  ///< share of the transfer time under compute; 1 without transfers
  double critical_path_seconds = 0, lower_bound_seconds = 0;
  std::vector<Actor> actors;  ///< those that did something
};

/// One finished run: a line of `runs.jsonl`.
struct RunRecord {
  std::string point;  ///< `Point::key`
  int repeat = 0;
  std::string machine, engine, workload, devices;
  std::vector<std::pair<std::string, std::string>> parameters, options;
  std::vector<std::string> device_names;
  workloads::Result result;
  std::string error;  ///< not empty: it failed, and nothing of the rest counts
  Activity activity;
  std::optional<Timeline> timeline;  ///< of the first repeat

  [[nodiscard]] std::string key() const { return point + " | repeat " + std::to_string(repeat); }
};

/// Without activity and results yet.
RunRecord record_of(const Point& point, int repeat);
/// Puts what was recorded into `record`; the timeline too if `is_drawn`.
void add_recording(RunRecord& record, const TraceData& data, bool is_drawn);

/// One object; the timeline only if asked for.
nlohmann::ordered_json to_json(const RunRecord& record, bool with_timeline);
/// The reverse. Throws `nlohmann::json::exception` for what it does not understand.
RunRecord record_from(const nlohmann::ordered_json& json);

}  // namespace weft::experiment
