#include <set>

#include "actors/simulated/calibration.hpp"
#include "apps/experiment/spec.hpp"
#include "apps/mlp_tiny_data.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

namespace weft::experiment {
namespace {

const std::string kMinimal = "name: x\nworkloads: gemm\n";

std::string refusal(const std::string& text) {
  return test::thrown<SpecError>([&] { parse_spec(text, "a.yaml"); });
}

TEST_CASE("a minimal spec runs a workload on all devices of the live machine", "[experiment]") {
  const Spec spec = parse_spec(kMinimal, "a.yaml");
  const auto points = expand(spec);
  REQUIRE(points.size() == 1);
  CHECK(points[0].machine.is_live());
  CHECK(points[0].engine == Engine::Emulated);
  CHECK(points[0].devices.text() == "all");
  CHECK(points[0].values.number("n") == 192);
  CHECK(spec.repeats == 3);
}

TEST_CASE("a spec is the product of its lists", "[experiment]") {
  const Spec spec = parse_spec(R"(
name: all
machines:
  - live
  - machine: 2 sockets x 4 cores, 2 gpus
    label: two
    set: [link0.bytes_per_second=1 GB/s]
    remove: gpu1
engines: [emulated, real]
devices: [1 gpu, gpus]
workloads:
  - name: gemm
    parameters: {n: [64, 128, 256], tile: 32}
  - name: mlp
    devices: [all]
options:
  p2p: [true, false]
  emulated: launch=1ms,link=1GB
repeats: 7
)",
                               "a.yaml");
  const auto points = expand(spec);
  CHECK(points.size() == 2 * 2 * 2 * (2 * 3 + 1));
  CHECK(spec.repeats == 7);
  CHECK(spec.machines[1].set.size() == 1);
  CHECK(spec.machines[1].remove == std::vector<std::string>{"gpu1"});
  CHECK(spec.machines[1].where == "a.yaml:5");
  std::set<std::string> keys;
  for (const Point& point : points) keys.insert(point.key());
  CHECK(keys.size() == points.size());
  CHECK(points[1].key() ==
        "live | emulated | gemm | n=128,tile=32,placement=owner | 1 gpu | "
        "p2p=true,emulated=launch=1ms,link=1GB");
}

TEST_CASE("what is wrong in a spec is named with its line", "[experiment]") {
  const auto says = [](const std::string& text, const std::string& expected) {
    INFO(text);
    CHECK(refusal(text) == expected);
  };
  says("name: x\nworkload: gemm\n",
       "a.yaml:2: \"workload\" is no key here; allowed are name, machines, calibration, "
       "engines, workloads, devices, options, repeats");
  says("name: x\n", "a.yaml:1: the key workloads is missing: a list of workloads");
  says("workloads: gemm\n", "a.yaml:1: the key name is missing: what the experiment is called");
  says(kMinimal + "repeats: 0\n", "a.yaml:3: repeats: \"0\" is not a whole number from 1 to 10000");
  says(kMinimal + "repeats: [1]\n", "a.yaml:3: repeats: expected a text, got a list");
  says(kMinimal + "repeats: two\n",
       "a.yaml:3: repeats: \"two\" is not a whole number from 1 to 10000");
  says(kMinimal + "engines: [emulated, cuda]\n",
       "a.yaml:3: engines: \"cuda\" is not one of real, emulated, simulated");
  says(kMinimal + "engines: []\n",
       "a.yaml:3: engines: the list is empty; expected at least one value");
  says(kMinimal + "name: y\n", "a.yaml:3: \"name\" is given twice");
  says(kMinimal + "machines:\n", "a.yaml:3: machines: has no value");
  says(kMinimal + "options: {p2p: 1}\n", "a.yaml:3: options.p2p: \"1\" is not one of true, false");
  says(kMinimal + "options: {lanes: 1}\n",
       "a.yaml:3: options: \"lanes\" is no key here; allowed are data, emulated, p2p, precision, "
       "relay");
  says(kMinimal + "machines: [live, live]\n",
       "a.yaml:3: machines: two machines are called \"live\"; give each a label of its own");
  says(kMinimal + "machines:\n  - label: x\n",
       "a.yaml:4: machines: the key machine is missing: live, or what --machine takes");
  says("name: x\nworkloads:\n  - name: gemm\n    parameters:\n      n: [64, big]\n",
       "a.yaml:5: workloads.parameters.n: n: \"big\" is not a whole number from 1 to 65536");
  says("name: x\nworkloads:\n  - name: gemm\n    parameters: {m: 3}\n",
       "a.yaml:4: workloads.parameters: \"m\" is no key here; allowed are n, tile, placement");
  says("name: x\nworkloads:\n  - name: gemm\n    parameters: {n: [64, 64]}\n",
       "a.yaml:4: workloads.parameters.n: \"64\" is in the list twice");
  says("name: x\nworkloads: [gemm, gemm]\n",
       "a.yaml: workloads: gemm with n=192,tile=64,placement=owner on all is there twice; leave "
       "one of them out");
  says("- name\n", "a.yaml:1: expected keys with values, got a list");
  says("", "a.yaml:1: expected keys with values, got nothing");
  CHECK_THAT(refusal("name: x\nworkloads: [gem]\n"),
             contains_text("a.yaml:2: workloads: \"gem\" is no workload; there are allreduce,"));
  CHECK_THAT(refusal(kMinimal + "devices: two gpus\n"),
             contains_text("a.yaml:3: devices: \"two gpus\" names no devices; allowed are all,"));
  CHECK_THAT(refusal(kMinimal + "devices: gpu0,gpu0\n"), contains_text("names no devices"));
  CHECK_THAT(refusal(kMinimal + "options: {emulated: speed=3}\n"),
             contains_text("a.yaml:3: options.emulated: emulated GPUs: \"speed=3\" is not known"));
  CHECK_THAT(refusal("name: [x\n"), contains_text("this is not YAML"));
  CHECK_THAT(refusal("name: x\n\tworkloads: gemm\n"), contains_text("this is not YAML"));
}

TEST_CASE("simulated points take what the calibration of their machine or of the spec says",
          "[experiment]") {
  const mlp::TemporaryFolder folder("experiment_calibration");
  const auto write = [&](const std::string& name, double submission_ns) {
    Calibration made;
    made.submission_ns = {submission_ns, submission_ns, submission_ns, 1};
    made.notice_ns = {0, 0, 0, 1};
    mlp::write_file(folder.file(name), write_calibration(made));
  };
  write("all.json", 1);
  write("own.json", 2);
  const std::string text = R"(
calibration: all.json
name: x
machines:
  - laptop
  - {machine: gh200, calibration: ./own.json}
engines: [emulated, simulated]
workloads: gemm
options: {data: none}
)";
  const auto points = expand(parse_spec(text, folder.file("spec.yaml")));
  REQUIRE(points.size() == 4);
  CHECK(points[0].options.size() == 1);  // emulated: not used, not shown
  CHECK(points[1].key() ==
        "laptop | simulated | gemm | n=192,tile=64,placement=owner | all | "
        "data=none,calibration=all.json");
  CHECK(points[1].machine.calibration.read->submission_ns.median == 1);
  CHECK(points[3].options.back() ==
        std::pair<std::string, std::string>("calibration", "./own.json"));
  CHECK(points[3].machine.calibration.read->submission_ns.median == 2);

  // With the whole path a spec may be anywhere.
  const auto anywhere = parse_spec(
      kMinimal + "engines: simulated\ncalibration: " + folder.file("own.json") + "\n", "a.yaml");
  CHECK(anywhere.machines[0].calibration.read->submission_ns.median == 2);
}

TEST_CASE("a calibration that cannot be used is named in one line", "[experiment]") {
  const mlp::TemporaryFolder folder("experiment_calibration_wrong");
  const std::string spec = folder.file("spec.yaml");
  const auto said = [&](const std::string& text) {
    return test::thrown<SpecError>([&] { parse_spec(text, spec); });
  };
  const std::string simulated = kMinimal + "engines: simulated\n";
  CHECK(said(simulated + "calibration: no.json\n") ==
        spec + ":4: calibration: " + folder.file("no.json") +
            ": cannot be read; expected a file that weft calibrate wrote");
  mlp::write_file(folder.file("other.json"), "{\"weft_calibration\": 99}");
  CHECK(said(simulated + "machines:\n  - machine: live\n    calibration: other.json\n") ==
        spec + ":6: machines.calibration: " + folder.file("other.json") +
            ": weft_calibration: version 99 is not known; expected 1; make it again with weft "
            "calibrate");
  mlp::write_file(folder.file("text.json"), "not even JSON");
  CHECK_THAT(said(simulated + "calibration: text.json\n"),
             contains_text("text.json: the document: no calibration"));
  CHECK(said(simulated + "calibration: [a, b]\n") ==
        spec + ":4: calibration: expected a text, got a list");

  Calibration made;
  made.submission_ns = made.notice_ns = {1, 1, 1, 1};
  mlp::write_file(folder.file("good.json"), write_calibration(made));
  CHECK(said(kMinimal + "calibration: good.json\n") ==
        spec +
            ": calibration: only simulated points use good.json; add simulated to engines, or "
            "leave it out");
}

TEST_CASE("a spec that is not there is named", "[experiment]") {
  CHECK(test::thrown<SpecError>([] { read_spec("/nowhere/a.yaml"); }) ==
        "/nowhere/a.yaml: cannot be read; expected a file with an experiment in YAML");
}

}  // namespace
}  // namespace weft::experiment
