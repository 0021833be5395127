#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "actors/simulated/calibration.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace weft;
using namespace weft::test;
using Json = nlohmann::json;

namespace {

Calibration::Figure about(double median) {
  return {median, 0.5 * median, 2 * median, 5};
}

Calibration sample() {
  Calibration made;
  made.made = "2025-01-31";
  made.machine = "1 socket, 2 cores";
  Calibration::Device device;
  device.model = "a processor";
  device.launch_ns = about(2000);
  device.gap_ns = {0, 0, 10, 3};
  device.kernels["matmul"] = {{2e9, 3e6, about(0.25), 1.5, "fp32"},
                              {2e6, 3e4, about(0.001), 1, "fp64"}};
  made.devices.push_back(device);
  device.model = "a GPU";
  device.is_gpu = true;
  made.devices.push_back(device);
  made.submission_ns = about(350);
  made.notice_ns = about(5000);
  made.links.push_back(
      {LinkKind::Pcie, 16, 4, SocketId{0}, GpuId{1}, false, about(25e9), about(1000)});
  made.memories.push_back({"a processor", about(20e9), about(10e9), about(90)});
  return made;
}

// What reading says of the sample, changed.
std::string said(const std::function<void(Json&)>& change) {
  Json document = Json::parse(write_calibration(sample()));
  change(document);
  return thrown<CalibrationError>([&] { read_calibration(document.dump(), "file.json"); });
}

}  // namespace

TEST_CASE("a calibration comes back from its file as it was", "[calibration]") {
  const Calibration written = sample();
  CHECK(read_calibration(write_calibration(written), "text") == written);
}

TEST_CASE("a device is found by model and kind", "[calibration]") {
  const Calibration calibration = sample();
  CHECK(calibration.find("a GPU", true) == &calibration.devices[1]);
  CHECK(calibration.find("a GPU", false) == nullptr);
  CHECK(calibration.find("another", true) == nullptr);
}

TEST_CASE("what is wrong in a calibration is named with its place", "[calibration]") {
  CHECK(said([](Json&) {}).empty());
  CHECK(said([](Json& d) { d["weft_calibration"] = 2; }) ==
        "file.json: weft_calibration: version 2 is not known; expected 1; make it again with weft "
        "calibrate");
  CHECK(has(said([](Json& d) { d.erase("weft_calibration"); }), "no calibration"));
  CHECK(
      has(said([](Json& d) { d["extra"] = 1; }),
          "file.json: the document: the key \"extra\" is not known; expected weft_calibration, "));
  CHECK(has(said([](Json& d) { d["devices"][1]["colour"] = 1; }),
            "devices[1]: the key \"colour\" is not known"));
  CHECK(has(said([](Json& d) { d["devices"][0].erase("gap_ns"); }),
            "devices[0]: \"gap_ns\" is missing"));
  CHECK(said([](Json& d) { d["devices"][0]["kernels"]["matmul"][1]["seconds"]["median"] = 0; }) ==
        "file.json: devices[0].kernels.matmul[1].seconds.median: 0; expected a number above 0");
  CHECK(has(said([](Json& d) { d["links"][0]["bytes_per_second"]["least"] = -1; }),
            "links[0].bytes_per_second.least: -1; expected a number above 0"));
  CHECK(has(said([](Json& d) { d["memory"][0]["read_bytes_per_second"]["most"] = "fast"; }),
            "memory[0].read_bytes_per_second.most: \"fast\"; expected a number above 0"));
  CHECK(has(said([](Json& d) { d["submission_ns"]["median"] = -5; }), "a number of at least 0"));
  CHECK(has(said([](Json& d) { d["notice_ns"]["most"] = 1; }), "least <= median <= most"));
  CHECK(has(said([](Json& d) { d["notice_ns"]["samples"] = 0; }), "notice_ns.samples: 0"));
  CHECK(has(said([](Json& d) { d["notice_ns"] = 7; }), "notice_ns: 7 is no object"));
  CHECK(has(said([](Json& d) { d["devices"][0]["kind"] = "tpu"; }), "gpu or socket"));
  CHECK(has(said([](Json& d) { d["devices"][0]["kernels"]["matmul"] = Json::array(); }),
            "at least one"));
  CHECK(has(said([](Json& d) { d["devices"][0]["kernels"]["matmul"][0]["precision"] = "int8"; }),
            "fp32, tf32, bf16 or fp64"));
  CHECK(has(said([](Json& d) { d["devices"][0]["kernels"]["matmul"][0]["cores"] = 0; }),
            "cores: 0; expected a number of at least 1"));
  CHECK(has(said([](Json& d) { d["devices"][1] = d["devices"][0]; }), "each model once"));
  CHECK(has(said([](Json& d) { d["links"][0]["kind"] = "string"; }), "links[0].kind"));
  CHECK(has(said([](Json& d) { d["links"][0]["to"] = "gpu"; }), "links[0].to"));
  CHECK(has(said([](Json& d) { d["links"][0]["width"] = 1.5; }), "a whole number"));
  CHECK(has(said([](Json& d) { d["links"] = Json::object(); }), "links: {} is no list"));
}

TEST_CASE("texts that are no JSON, and files that are not there, are refused", "[calibration]") {
  for (const char* text :
       {"", "{", "[]", "null", "\"weft_calibration\"", "{\"weft_calibration\": "})
    CHECK(has(thrown<CalibrationError>([&] { read_calibration(text, "file"); }),
              "file: the document: no calibration"));
  CHECK(has(thrown<CalibrationError>([] { read_calibration_file("/not/there"); }),
            "/not/there: cannot be read"));
}

TEST_CASE("figures that cannot be are not written", "[calibration]") {
  Calibration slow = sample();
  slow.memories[0].read_bytes_per_second = {};
  CHECK(has(thrown<CalibrationError>([&] { write_calibration(slow); }),
            "memory[0].read_bytes_per_second.median: 0.0; expected a number above 0"));
}

TEST_CASE("a sample's figure is its median, least, most and size", "[calibration]") {
  CHECK(figure_of({5, 1, 3}) == Calibration::Figure{3, 1, 5, 3});
  CHECK(figure_of({4, 1, 3, 8}) == Calibration::Figure{3.5, 1, 8, 4});
  CHECK(figure_of({}) == Calibration::Figure{});
}
