#include "apps/experiment/results.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace weft::experiment {
namespace {

using Json = nlohmann::ordered_json;

double median_of(const std::vector<const RunRecord*>& sorted) {
  const std::size_t half = sorted.size() / 2;
  const double upper = sorted[half]->result.seconds;
  return sorted.size() % 2 ? upper : (sorted[half - 1]->result.seconds + upper) / 2;
}

void finish(PointResult& result) {
  if (result.runs.empty()) return;
  std::stable_sort(
      result.runs.begin(), result.runs.end(),
      [](const RunRecord* a, const RunRecord* b) { return a->result.seconds < b->result.seconds; });
  result.median = median_of(result.runs);
  result.least = result.runs.front()->result.seconds;
  result.most = result.runs.back()->result.seconds;
}

// RFC 4180: quotes where a field needs them, doubled inside.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string joined(const Coordinates& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs) text += (text.empty() ? "" : " ") + name + "=" + value;
  return text;
}

Json point_json(const PointResult& result) {
  const RunRecord& any = *result.any;
  Json json{{"point", any.point},        {"workload", any.workload},
            {"machine", any.machine},    {"engine", any.engine},
            {"devices", any.devices},    {"device_count", any.device_names.size()},
            {"runs", result.runs.size()}};
  for (const auto& [name, pairs] :
       {std::pair("parameters", any.parameters), std::pair("options", any.options)}) {
    json[name] = Json::object();
    for (const auto& [key, value] : pairs) json[name][key] = value;
  }
  if (!result.error.empty()) json["error"] = result.error;
  if (result.runs.empty()) return json;
  const RunRecord& typical = result.typical();
  json["seconds"] = {{"median", result.median},
                     {"min", result.least},
                     {"max", result.most},
                     {"spread", result.spread()}};
  json["flops"] = typical.result.flops;
  json["bytes"] = typical.result.bytes;
  json["ops"] = typical.result.ops;
  json["hidden"] = typical.activity.hidden;
  json["exposed_seconds"] = typical.activity.exposed_seconds;
  json["critical_path_seconds"] = typical.activity.critical_path_seconds;
  json["check"] = typical.result.check;
  return json;
}

}  // namespace

std::vector<PointResult> results_of(const std::vector<Point>& points,
                                    const std::vector<RunRecord>& records) {
  std::map<std::string, PointResult> of_key;
  for (const RunRecord& record : records) {
    PointResult& result = of_key[record.point];
    if (record.error.empty())
      result.runs.push_back(&record);
    else
      result.error = record.error;
    if (!result.any || record.error.empty()) result.any = &record;
  }
  std::vector<PointResult> results;
  for (const Point& point : points) {
    const auto found = of_key.find(point.key());
    if (found == of_key.end()) continue;
    finish(found->second);
    results.push_back(found->second);
  }
  return results;
}

std::string value_of(const RunRecord& record, const std::string& name) {
  for (const auto& [key, value] : coordinates_of(record))
    if (key == name) return value;
  return "";
}

Coordinates coordinates_of(const RunRecord& record) {
  Coordinates all{
      {"machine", record.machine}, {"engine", record.engine}, {"devices", record.devices}};
  all.insert(all.end(), record.parameters.begin(), record.parameters.end());
  all.insert(all.end(), record.options.begin(), record.options.end());
  return all;
}

std::vector<std::string> varying(const std::vector<PointResult>& results) {
  std::vector<std::string> names;
  for (const PointResult& result : results)
    for (const auto& [name, value] : coordinates_of(*result.any))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  // What only some have differs too: of those without, the value is empty.
  std::erase_if(names, [&](const std::string& name) {
    return std::all_of(results.begin(), results.end(), [&](const PointResult& result) {
      return value_of(*result.any, name) == value_of(*results.front().any, name);
    });
  });
  return names;
}

std::string label_of(const RunRecord& record, const std::vector<std::string>& names,
                     const std::string& but) {
  std::string label;
  for (const auto& [name, value] : coordinates_of(record)) {
    if (name == but || std::find(names.begin(), names.end(), name) == names.end()) continue;
    const bool speaks = name == "machine" || name == "engine" || name == "devices";
    label += (label.empty() ? "" : ", ") + (speaks ? value : name + " = " + value);
  }
  return label;
}

std::string to_csv(const std::vector<RunRecord>& records) {
  std::ostringstream csv;
  csv.precision(9);
  csv << "workload,machine,engine,devices,device_count,parameters,options,repeat,seconds,flops,"
         "bytes,ops,transfer_seconds,exposed_seconds,hidden,critical_path_seconds,check,error\n";
  for (const RunRecord& record : records) {
    csv << field(record.workload) << ',' << field(record.machine) << ',' << record.engine << ','
        << field(record.devices) << ',' << record.device_names.size() << ','
        << field(joined(record.parameters)) << ',' << field(joined(record.options)) << ','
        << record.repeat << ',';
    if (record.error.empty())
      csv << record.result.seconds << ',' << record.result.flops << ',' << record.result.bytes
          << ',' << record.result.ops << ',' << record.activity.transfer_seconds << ','
          << record.activity.exposed_seconds << ',' << record.activity.hidden << ','
          << record.activity.critical_path_seconds << ',' << field(record.result.check) << ",\n";
    else
      csv << ",,,,,,,,," << field(record.error) << '\n';
  }
  return csv.str();
}

Json to_json(const Spec& spec, const std::vector<PointResult>& results,
             const std::vector<RunRecord>& records, const Outcome& outcome) {
  Json json{{"name", spec.name}, {"spec", spec.text}};
  json["machines"] = Json::array();
  for (const UsedMachine& each : outcome.machines)
    json["machines"].push_back({{"label", each.label},
                                {"machine", each.source},
                                {"sockets", each.machine.sockets.size()},
                                {"gpus", each.machine.gpus.size()}});
  json["points"] = Json::array();
  for (const PointResult& result : results) json["points"].push_back(point_json(result));
  json["runs"] = Json::array();
  for (const RunRecord& record : records) json["runs"].push_back(to_json(record, false));
  json["left_out"] = Json::array();
  for (const LeftOut& each : outcome.left_out)
    json["left_out"].push_back({{"point", each.point.key()}, {"reason", each.reason}});
  return json;
}

}  // namespace weft::experiment
