#include "apps/overlap/report.hpp"

#include "actors/runtime_options.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/common/progress.hpp"
#include "apps/common/table.hpp"
#include "apps/overlap/model.hpp"
#include "framework/trace_summary.hpp"
#include "topology/describe.hpp"

namespace weft::apps {
namespace {

double ratio(const Row& row) {
  return row.ideal_seconds > 0 ? row.timing.seconds / row.ideal_seconds : 1;
}

}  // namespace

Result with_hidden(const std::string& title, const std::vector<Row>& rows,
                   const TraceData& recording) {
  Result result{title, {}};
  for (const Row& row : rows) {
    const TraceSummary summary =
        summarise(between(recording, row.timing.from_ns, row.timing.to_ns));
    const bool transferred = summary.transfer_seconds > 0;
    result.lines.push_back({row, transferred ? summary.hidden : 0, transferred});
  }
  return result;
}

std::string to_table(const std::vector<Result>& results) {
  Table table({"", "time", "least", "most", "sum", "max", "ratio", "hidden"});
  for (const Result& result : results) {
    table.add({result.title});
    for (const auto& [row, hidden, transferred] : result.lines) {
      const bool is_part = row.sum_seconds == 0;
      table.add({"   " + row.label, format_seconds(row.timing.seconds),
                 format_seconds(row.timing.least), format_seconds(row.timing.most),
                 is_part ? "" : format_seconds(row.sum_seconds),
                 is_part ? "" : format_seconds(row.ideal_seconds),
                 is_part ? "" : format("%.2f", ratio(row)),
                 transferred ? format("%.0f %%", 100 * hidden) : ""});
    }
  }
  return table.text(2);
}

std::string to_json(const std::vector<Result>& results, const Runtime& runtime,
                    const Workload& workload, int repeat, const std::string& pace) {
  nlohmann::ordered_json json;
  json["experiments"] = nlohmann::ordered_json::array();
  for (const Result& result : results)
    for (const auto& [row, hidden, transferred] : result.lines)
      json["experiments"].push_back({{"name", row.name},
                                     {"seconds", row.timing.seconds},
                                     {"ideal_seconds", row.ideal_seconds},
                                     {"ratio", ratio(row)},
                                     {"hidden", hidden}});
  json["devices"] = nlohmann::ordered_json::array();
  for (const Device& device : runtime.devices())
    json["devices"].push_back({{"id", device.name()}, {"engine", runtime.engine_of(device)}});
  json["machine"] = summary(runtime.machine());
  json["modelled"] = pace;
  json["n"] = workload.n;
  json["ops"] = workload.ops;
  json["repeat"] = repeat;
  json["dtype"] = workload.is_double ? "f64" : "f32";
  json["precision"] = to_string(workload.precision);
  json["plan"] = workload.is_planned;
  json["to"] = workload.to_program ? "pageable" : "pinned";
  return json.dump(2);
}

}  // namespace weft::apps
