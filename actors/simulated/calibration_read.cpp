#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "actors/simulated/calibration.hpp"
#include "topology/names.hpp"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

/// A value of the document that knows where it is.
class Entry {
 public:
  Entry(const Json& json, std::string file, std::string path = {})
      : json_(json), file_(std::move(file)), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& what, const std::string& wanted) const {
    throw CalibrationError(file_ + ": " + (path_.empty() ? "the document" : path_) + ": " + what +
                           "; expected " + wanted);
  }
  /// What is there, for a message.
  [[nodiscard]] std::string shown() const {
    const std::string text = json_.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() > 40 ? text.substr(0, 37) + "..." : text;
  }

  /// An object with these keys and no other.
  const Entry& with_keys(std::initializer_list<const char*> keys) const {
    std::string all;
    for (const char* key : keys) all += (all.empty() ? "" : ", ") + std::string(key);
    if (!json_.is_object()) fail(shown() + " is no object", "one with " + all);
    for (const auto& [key, value] : json_.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        fail("the key \"" + printable(key) + "\" is not known", all);
    for (const char* key : keys)
      if (!json_.contains(key)) fail("\"" + std::string(key) + "\" is missing", all);
    return *this;
  }
  [[nodiscard]] Entry at(const std::string& key) const {
    return {json_.at(key), file_, path_.empty() ? key : path_ + "." + key};
  }
  /// Calls `visit` with each element of a list, and with its number.
  template <class Visit>
  void for_each(const Visit& visit) const {
    if (!json_.is_array()) fail(shown() + " is no list", "a list");
    for (std::size_t i = 0; i < json_.size(); ++i)
      visit(Entry(json_[i], file_, path_ + "[" + std::to_string(i) + "]"));
  }
  template <class Visit>
  void for_each_key(const Visit& visit) const {
    if (!json_.is_object()) fail(shown() + " is no object", "an object");
    for (const auto& [key, value] : json_.items()) visit(key, at(key));
  }

  [[nodiscard]] std::string text() const {
    if (!json_.is_string()) fail(shown() + " is no text", "a text");
    return json_.get<std::string>();
  }
  [[nodiscard]] bool flag() const {
    if (!json_.is_boolean()) fail(shown(), "true or false");
    return json_.get<bool>();
  }
  [[nodiscard]] double number(double least) const {
    const double value = json_.is_number() ? json_.get<double>() : -1;
    if (!json_.is_number() || !std::isfinite(value) || value < least)
      fail(shown(), least > 0 ? "a number of at least " + std::to_string(static_cast<int>(least))
                              : "a number of at least 0");
    return value;
  }
  [[nodiscard]] double positive() const {
    const double value = json_.is_number() ? json_.get<double>() : -1;
    if (!std::isfinite(value) || value <= 0) fail(shown(), "a number above 0");
    return value;
  }
  [[nodiscard]] std::uint32_t count(std::uint32_t least) const {
    if (!json_.is_number_unsigned() || json_.get<std::uint64_t>() < least ||
        json_.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max())
      fail(shown(), "a whole number of at least " + std::to_string(least));
    return json_.get<std::uint32_t>();
  }
  /// A word that `parse` knows.
  template <class Parse>
  auto word(const Parse& parse, const std::string& wanted) const {
    const auto value = parse(text());
    if (!value) fail(shown() + " is not known", wanted);
    return *value;
  }

 private:
  const Json& json_;
  const std::string file_, path_;
};

Calibration::Figure read_figure(const Entry& entry, bool may_be_zero) {
  entry.with_keys({"median", "least", "most", "samples"});
  const auto value = [&](const char* key) {
    return may_be_zero ? entry.at(key).number(0) : entry.at(key).positive();
  };
  const Calibration::Figure figure{value("median"), value("least"), value("most"),
                                   entry.at("samples").count(1)};
  if (figure.least > figure.median || figure.median > figure.most)
    entry.fail("its numbers are not in order", "least <= median <= most");
  return figure;
}
Calibration::Figure positive(const Entry& entry) {
  return read_figure(entry, false);
}
Calibration::Figure not_negative(const Entry& entry) {
  return read_figure(entry, true);
}

Calibration::Point read_point(const Entry& entry) {
  entry.with_keys({"flops", "bytes", "precision", "seconds", "cores"});
  Calibration::Point point;
  point.flops = entry.at("flops").number(0);
  point.bytes = entry.at("bytes").number(0);
  point.seconds = positive(entry.at("seconds"));
  point.cores = entry.at("cores").number(1);
  point.precision = entry.at("precision").text();
  for (const char* known : {"fp32", "tf32", "bf16", "fp64"})
    if (point.precision == known) return point;
  entry.at("precision").fail(entry.at("precision").shown(), "fp32, tf32, bf16 or fp64");
}

Calibration::Device read_device(const Entry& entry) {
  entry.with_keys({"model", "kind", "launch_ns", "gap_ns", "kernels"});
  Calibration::Device device;
  device.model = entry.at("model").text();
  const std::string kind = entry.at("kind").text();
  if (kind != "gpu" && kind != "socket")
    entry.at("kind").fail(entry.at("kind").shown(), "gpu or socket");
  device.is_gpu = kind == "gpu";
  device.launch_ns = not_negative(entry.at("launch_ns"));
  device.gap_ns = not_negative(entry.at("gap_ns"));
  entry.at("kernels").for_each_key([&](const std::string& name, const Entry& points) {
    auto& list = device.kernels[name];
    points.for_each([&](const Entry& point) { list.push_back(read_point(point)); });
    if (list.empty()) points.fail("no point", "at least one");
  });
  return device;
}

Calibration::Link read_link(const Entry& entry) {
  entry.with_keys(
      {"kind", "width", "generation", "from", "to", "emulated", "bytes_per_second", "latency_ns"});
  Calibration::Link link;
  link.kind = entry.at("kind").word(parse_link_kind,
                                    "bus, pcie, nvlink, xgmi, c2c, socket, disk or network");
  link.width = entry.at("width").count(0);
  link.generation = entry.at("generation").count(0);
  link.from = entry.at("from").word(parse_node, "a thing such as socket0, gpu1");
  link.to = entry.at("to").word(parse_node, "a thing such as socket0, gpu1");
  link.is_emulated = entry.at("emulated").flag();
  link.bytes_per_second = positive(entry.at("bytes_per_second"));
  link.latency_ns = not_negative(entry.at("latency_ns"));
  return link;
}

Calibration::Memory read_memory(const Entry& entry) {
  entry.with_keys({"model", "read_bytes_per_second", "write_bytes_per_second", "latency_ns"});
  return {entry.at("model").text(), positive(entry.at("read_bytes_per_second")),
          positive(entry.at("write_bytes_per_second")), not_negative(entry.at("latency_ns"))};
}

}  // namespace

Calibration read_calibration(std::string_view text, const std::string& name) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  const Json json = text.size() > kMost ? Json() : Json::parse(text, nullptr, false);
  const Entry document(json, name);
  if (!json.is_object() || !json.contains("weft_calibration"))
    document.fail("no calibration", "what weft calibrate --out wrote");
  const Entry version = document.at("weft_calibration");
  if (json["weft_calibration"] != 1)
    version.fail("version " + version.shown() + " is not known",
                 "1; make it again with weft calibrate");
  document.with_keys({"weft_calibration", "made", "machine", "devices", "submission_ns",
                      "notice_ns", "links", "memory"});
  Calibration made;
  made.made = document.at("made").text();
  made.machine = document.at("machine").text();
  document.at("devices").for_each([&](const Entry& entry) {
    Calibration::Device device = read_device(entry);
    if (made.find(device.model, device.is_gpu))
      entry.fail("a second " + std::string(device.is_gpu ? "GPU" : "socket") + " of model \"" +
                     printable(device.model) + "\"",
                 "each model once");
    made.devices.push_back(std::move(device));
  });
  made.submission_ns = not_negative(document.at("submission_ns"));
  made.notice_ns = not_negative(document.at("notice_ns"));
  document.at("links").for_each(
      [&](const Entry& entry) { made.links.push_back(read_link(entry)); });
  document.at("memory").for_each(
      [&](const Entry& entry) { made.memories.push_back(read_memory(entry)); });
  return made;
}

Calibration read_calibration_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw CalibrationError(path + ": cannot be read; expected a file that weft calibrate wrote");
  return read_calibration(text.str(), path);
}

}  // namespace weft
