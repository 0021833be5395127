#include "apps/experiment/run_record.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "framework/trace_summary.hpp"

namespace weft::experiment {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::pair<std::string, std::string>>;

constexpr std::pair<TrackKind, const char*> kKinds[] = {{TrackKind::Socket, "socket"},
                                                        {TrackKind::Gpu, "gpu"},
                                                        {TrackKind::Link, "link"},
                                                        {TrackKind::Collective, "collective"},
                                                        {TrackKind::Submitter, "submitter"}};

std::string kind_name(TrackKind kind) {
  for (const auto& [value, name] : kKinds)
    if (value == kind) return name;
  return "?";
}

TrackKind kind_from(const std::string& name) {
  for (const auto& [value, known] : kKinds)
    if (name == known) return value;
  throw std::invalid_argument("\"" + name + "\" is no kind of actor");
}

template <class Value>
Json object_of(const std::vector<std::pair<std::string, Value>>& pairs) {
  Json object = Json::object();
  for (const auto& [name, value] : pairs) object[name] = value;
  return object;
}

template <class Value>
std::vector<std::pair<std::string, Value>> pairs_of(const Json& object) {
  std::vector<std::pair<std::string, Value>> pairs;
  for (const auto& [name, value] : object.items())
    pairs.emplace_back(name, value.template get<Value>());
  return pairs;
}

// Bars as [start, length, name] in units of a hundred-thousandth of the whole, which is finer than
// any picture and short as text.
constexpr double kUnits = 1e5;

Json to_json(const Timeline& timeline) {
  Json lanes = Json::array();
  const auto unit = [&](double seconds) {
    return timeline.seconds > 0 ? std::llround(kUnits * seconds / timeline.seconds) : 0;
  };
  for (const auto& lane : timeline.lanes) {
    Json bars = Json::array();
    for (const auto& bar : lane.bars)
      bars.push_back({unit(bar.start), unit(bar.end - bar.start), bar.name});
    lanes.push_back({{"actor", lane.actor},
                     {"lane", lane.lane},
                     {"kind", kind_name(lane.kind)},
                     {"busy", lane.busy},
                     {"bars", bars},
                     {"use", lane.use}});
  }
  return {{"seconds", timeline.seconds}, {"names", timeline.names}, {"lanes", lanes}};
}

Timeline timeline_from(const Json& json) {
  Timeline timeline;
  timeline.seconds = json.at("seconds");
  timeline.names = json.at("names").get<std::vector<std::string>>();
  for (const Json& each : json.at("lanes")) {
    Timeline::Lane lane{each.at("actor"),
                        each.at("lane"),
                        kind_from(each.at("kind")),
                        each.at("busy"),
                        {},
                        each.at("use").get<std::vector<double>>()};
    const double second = timeline.seconds / kUnits;
    for (const Json& bar : each.at("bars")) {
      const double start = bar.at(0).get<double>() * second;
      lane.bars.push_back({start, start + bar.at(1).get<double>() * second, bar.at(2)});
      if (lane.bars.back().name >= timeline.names.size())
        throw std::invalid_argument("a bar of the timeline has no name");
    }
    timeline.lanes.push_back(std::move(lane));
  }
  return timeline;
}

Json to_json(const Activity& activity) {
  Json actors = Json::array();
  for (const auto& actor : activity.actors)
    actors.push_back(
        {{"actor", actor.name}, {"kind", kind_name(actor.kind)}, {"busy", actor.busy}});
  return {{"transfer_seconds", activity.transfer_seconds},
          {"exposed_seconds", activity.exposed_seconds},
          {"hidden", activity.hidden},
          {"critical_path_seconds", activity.critical_path_seconds},
          {"lower_bound_seconds", activity.lower_bound_seconds},
          {"actors", actors}};
}

Activity activity_from(const Json& json) {
  Activity activity{
      json.at("transfer_seconds"),      json.at("exposed_seconds"),     json.at("hidden"),
      json.at("critical_path_seconds"), json.at("lower_bound_seconds"), {}};
  for (const Json& each : json.at("actors"))
    activity.actors.push_back({each.at("actor"), kind_from(each.at("kind")), each.at("busy")});
  return activity;
}

}  // namespace

RunRecord record_of(const Point& point, int repeat) {
  RunRecord record;
  record.point = point.key();
  record.repeat = repeat;
  record.machine = point.machine.label;
  record.engine = to_string(point.engine);
  record.workload = point.workload;
  record.devices = point.devices.text();
  for (const auto& parameter : point.values.parameters())
    record.parameters.emplace_back(parameter.name, point.values.text(parameter.name));
  record.options = point.options;
  return record;
}

void add_recording(RunRecord& record, const TraceData& data, bool is_drawn) {
  const TraceSummary summary = summarise(data);
  record.activity = {summary.transfer_seconds,      summary.exposed_seconds,     summary.hidden,
                     summary.critical_path_seconds, summary.lower_bound_seconds, {}};
  for (const auto& actor : summary.actors)
    if (actor.spans > 0) record.activity.actors.push_back({actor.actor, actor.kind, actor.busy});
  if (is_drawn) record.timeline = timeline_of(data);
}

Json to_json(const RunRecord& record, bool with_timeline) {
  Json json{{"key", record.key()},
            {"point", record.point},
            {"repeat", record.repeat},
            {"workload", record.workload},
            {"machine", record.machine},
            {"engine", record.engine},
            {"devices", record.devices},
            {"device_names", record.device_names},
            {"parameters", object_of(record.parameters)},
            {"options", object_of(record.options)}};
  if (!record.error.empty()) {
    json["error"] = record.error;
    return json;
  }
  json["seconds"] = record.result.seconds;
  json["flops"] = record.result.flops;
  json["bytes"] = record.result.bytes;
  json["ops"] = record.result.ops;
  json["check"] = record.result.check;
  json["figures"] = Json::object();
  for (const auto& [name, value] : record.result.figures)
    if (std::isfinite(value)) json["figures"][name] = value;  // JSON has no others
  json["activity"] = to_json(record.activity);
  if (with_timeline && record.timeline) json["timeline"] = to_json(*record.timeline);
  return json;
}

RunRecord record_from(const Json& json) {
  RunRecord record;
  record.point = json.at("point");
  record.repeat = json.at("repeat");
  record.workload = json.at("workload");
  record.machine = json.at("machine");
  record.engine = json.at("engine");
  record.devices = json.at("devices");
  record.device_names = json.at("device_names").get<std::vector<std::string>>();
  record.parameters = pairs_of<std::string>(json.at("parameters"));
  record.options = pairs_of<std::string>(json.at("options"));
  if (json.contains("error")) {
    record.error = json.at("error");
    return record;
  }
  record.result.seconds = json.at("seconds");
  record.result.flops = json.at("flops");
  record.result.bytes = json.at("bytes");
  record.result.ops = json.at("ops");
  record.result.check = json.at("check");
  record.result.figures = pairs_of<double>(json.at("figures"));
  record.activity = activity_from(json.at("activity"));
  if (json.contains("timeline")) record.timeline = timeline_from(json.at("timeline"));
  return record;
}

}  // namespace weft::experiment
