#include <nlohmann/json.hpp>

#include "actors/simulated/calibration.hpp"
#include "topology/names.hpp"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Calibration::Figure& figure) {
  return {{"median", figure.median},
          {"least", figure.least},
          {"most", figure.most},
          {"samples", figure.samples}};
}

Json json_of(const Calibration::Device& device) {
  Json made{{"model", device.model},
            {"kind", device.is_gpu ? "gpu" : "socket"},
            {"launch_ns", json_of(device.launch_ns)},
            {"gap_ns", json_of(device.gap_ns)},
            {"kernels", Json::object()}};
  for (const auto& [name, points] : device.kernels) {
    Json& list = made["kernels"][name] = Json::array();
    for (const Calibration::Point& point : points)
      list.push_back({{"flops", point.flops},
                      {"bytes", point.bytes},
                      {"precision", point.precision},
                      {"seconds", json_of(point.seconds)},
                      {"cores", point.cores}});
  }
  return made;
}

Json json_of(const Calibration::Link& link) {
  return {{"kind", to_string(link.kind)},
          {"width", link.width},
          {"generation", link.generation},
          {"from", to_string(link.from)},
          {"to", to_string(link.to)},
          {"emulated", link.is_emulated},
          {"bytes_per_second", json_of(link.bytes_per_second)},
          {"latency_ns", json_of(link.latency_ns)}};
}

Json json_of(const Calibration::Memory& memory) {
  return {{"model", memory.model},
          {"read_bytes_per_second", json_of(memory.read_bytes_per_second)},
          {"write_bytes_per_second", json_of(memory.write_bytes_per_second)},
          {"latency_ns", json_of(memory.latency_ns)}};
}

template <class T>
Json list_of(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(json_of(item));
  return list;
}

}  // namespace

std::string write_calibration(const Calibration& calibration) {
  const Json document{{"weft_calibration", 1},
                      {"made", calibration.made},
                      {"machine", printable(calibration.machine)},
                      {"devices", list_of(calibration.devices)},
                      {"submission_ns", json_of(calibration.submission_ns)},
                      {"notice_ns", json_of(calibration.notice_ns)},
                      {"links", list_of(calibration.links)},
                      {"memory", list_of(calibration.memories)}};
  const std::string text = document.dump(1) + "\n";
  read_calibration(text, "what was measured");
  return text;
}

}  // namespace weft
