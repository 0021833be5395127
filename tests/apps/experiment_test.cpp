// Runs `weft experiment` as a user does: results, resuming, the report.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "actors/simulated/calibration.hpp"
#include "apps/experiment/results.hpp"
#include "apps/experiment/run_log.hpp"
#include "apps/mlp_tiny_data.hpp"
#include "apps/weft_command.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

namespace weft::experiment {
namespace {

using mlp::read_file;
using mlp::TemporaryFolder;
using mlp::write_file;
using nlohmann::json;

const std::string kSpec = R"(name: small & <quick>
machines:
  - machine: 1 sockets x 2 cores, 2 gpus
    label: two
  - machine: 1 sockets x 2 cores
    label: none
workloads:
  - name: gemm
    parameters: {n: [32, 48], tile: 16}
  - name: allreduce
    parameters: {elements: 64, rounds: 2}
devices: [1 gpu, gpus]
repeats: 2
)";
constexpr std::size_t kPoints = 6, kRuns = 12;  // those on the machine with GPUs

test::Answer experiment(const std::string& arguments) {
  return test::run_weft(WEFT_COMMAND, "experiment " + arguments);
}

std::vector<std::string> lines_of(const std::string& file) {
  std::istringstream text(read_file(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// Whether every element of `page` is closed where it should be; else what is wrong.
std::string structure_error(const std::string& page) {
  std::vector<std::string> open;
  std::size_t at = page.find('>') + 1;  // behind the document type
  while ((at = page.find('<', at)) != std::string::npos) {
    std::size_t end = at;
    for (bool quoted = false; page[end] != '>' || quoted; ++end) {
      if (end + 1 >= page.size()) return "an element that does not end";
      if (page[end] == '"') quoted = !quoted;
      if (end > at && page[end] == '<') return "a bare < at " + std::to_string(end);
    }
    const std::string element = page.substr(at + 1, end - at - 1);
    const std::string name = element.substr(0, element.find_first_of(" \n/", 1));
    if (element[0] == '/') {
      if (open.empty() || "/" + open.back() != element) return "closes wrongly: " + element;
      open.pop_back();
    } else if (element.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? "" : "left open: " + open.back();
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

struct Folder : TemporaryFolder {
  Folder() : TemporaryFolder("experiment") { write_file(file("spec.yaml"), kSpec); }
  [[nodiscard]] std::string arguments(const std::string& more = {}) const {
    return file("spec.yaml") + " --out " + file("out") + " " + more;
  }
};

TEST_CASE("an experiment writes each run, tables and a report", "[experiment]") {
  const Folder folder;
  const auto answer = experiment(folder.arguments("--json " + folder.file("copy.json")));
  INFO(answer.text);
  REQUIRE(answer.exit_code == 0);
  CHECK_THAT(answer.text, contains_text("left out: 6 points such as none | emulated | gemm"));
  CHECK_THAT(answer.text, contains_text("the machine has 1 socket and 0 GPUs"));

  const auto lines = lines_of(folder.file("out/runs.jsonl"));
  REQUIRE(lines.size() == kRuns);
  std::set<std::string> keys;
  for (const auto& line : lines) {
    const json run = json::parse(line);
    keys.insert(run["key"]);
    CHECK(run["seconds"].get<double>() > 0);
    CHECK(run["ops"].get<int>() > 0);
    CHECK(run["check"].get<std::string>().rfind("checked: ", 0) == 0);
    CHECK(run.contains("timeline") == (run["repeat"] == 0));
  }
  CHECK(keys.size() == kRuns);

  const json results = json::parse(read_file(folder.file("out/results.json")));
  CHECK(results == json::parse(read_file(folder.file("copy.json"))));
  CHECK(results["runs"].size() == kRuns);
  CHECK(results["left_out"].size() == 6);
  REQUIRE(results["points"].size() == kPoints);
  for (const json& point : results["points"]) {
    CHECK(point["runs"] == 2);
    CHECK(point["seconds"]["min"] <= point["seconds"]["median"]);
    CHECK(point["seconds"]["median"] <= point["seconds"]["max"]);
    CHECK(point["device_count"] == (point["devices"] == "1 gpu" ? 1 : 2));
  }

  const auto csv = lines_of(folder.file("out/results.csv"));
  REQUIRE(csv.size() == kRuns + 1);
  const auto commas = [](const std::string& line) {
    return std::count(line.begin(), line.end(), ',');
  };
  for (const auto& line : csv) CHECK(commas(line) == commas(csv[0]));
}

TEST_CASE("the report is well-formed, needs nothing else and has all points", "[experiment]") {
  const Folder folder;
  REQUIRE(experiment(folder.arguments()).exit_code == 0);
  const std::string page = read_file(folder.file("out/report.html"));
  CHECK(structure_error(page) == "");
  for (const char* part : {"<script", "src=", "@import", "url(", "<link", "<img"})
    CHECK(count_of(page, part) == 0);
  // The names of the SVG format are the only addresses.
  CHECK(count_of(page, "http") == count_of(page, "xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK_THAT(page, contains_text("small &amp; &lt;quick&gt;"));
  CHECK_THAT(page, contains_text("parameters: {n: [32, 48], tile: 16}"));  // the spec itself
  CHECK(count_of(page, "<h2>gemm</h2>") == 1);
  CHECK(count_of(page, "<h2>allreduce</h2>") == 1);
  CHECK(count_of(page, "<td>✓</td>") == kPoints);
  CHECK(count_of(page, "aria-label=\"time over n\"") == 1);
  CHECK(count_of(page, "aria-label=\"speed-up over devices\"") == 2);
  CHECK(count_of(page, "aria-label=\"timeline of") == 2);
  CHECK(count_of(page, "use of each link") == 2);
  for (const auto& line : lines_of(folder.file("out/runs.jsonl"))) {
    const json run = json::parse(line);
    for (const json& actor : run["activity"]["actors"]) CHECK(actor["busy"].get<double>() <= 1.001);
  }
}

TEST_CASE("the check of the structure of pages finds what is wrong", "[experiment]") {
  CHECK(structure_error("<!DOCTYPE html><p>a<br/></p>") == "");
  CHECK(structure_error("<!DOCTYPE html><p>a") == "left open: p");
  CHECK(structure_error("<!DOCTYPE html><p><b>a</p></b>") == "closes wrongly: /p");
  CHECK(structure_error("<!DOCTYPE html><p>a < b</p>") != "");
}

TEST_CASE("an interrupted experiment goes on where it was", "[experiment]") {
  const Folder folder;
  REQUIRE(experiment(folder.arguments()).exit_code == 0);
  const std::string runs = folder.file("out/runs.jsonl");
  const auto whole = lines_of(runs);
  // As if it had been stopped while it wrote the sixth run.
  std::string part;
  for (std::size_t i = 0; i < 5; ++i) part += whole[i] + "\n";
  write_file(runs, part + whole[5].substr(0, 40));
  std::filesystem::remove(folder.file("out/report.html"));

  const auto refused = experiment(folder.arguments());
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.text, contains_text("has runs of this experiment; --resume goes on"));

  const auto answer = experiment(folder.arguments("--resume"));
  INFO(answer.text);
  REQUIRE(answer.exit_code == 0);
  CHECK_THAT(answer.text, contains_text("resumed: 5 runs are there"));
  const auto now = lines_of(runs);
  REQUIRE(now.size() == kRuns);
  for (std::size_t i = 0; i < 5; ++i) CHECK(now[i] == whole[i]);
  std::set<std::string> keys;
  for (const auto& line : now) keys.insert(json::parse(line)["key"]);
  CHECK(keys.size() == kRuns);
  CHECK(count_of(read_file(folder.file("out/report.html")), "<td>✓</td>") == kPoints);

  CHECK(experiment(folder.arguments("--resume")).exit_code == 0);  // nothing is left to do
  CHECK(lines_of(runs) == now);
}

TEST_CASE("a folder of another spec is refused", "[experiment]") {
  const Folder folder;
  REQUIRE(experiment(folder.arguments()).exit_code == 0);
  write_file(folder.file("spec.yaml"), kSpec + "# changed\n");
  const auto answer = experiment(folder.arguments("--resume"));
  CHECK(answer.exit_code == 1);
  CHECK_THAT(answer.text, contains_text("belongs to another spec"));
  CHECK(count_of(answer.text, "\n") == 1);
  CHECK(lines_of(folder.file("out/runs.jsonl")).size() == kRuns);
}

TEST_CASE("a damaged line is named", "[experiment]") {
  const Folder folder;
  std::filesystem::create_directories(folder.file("out"));
  write_file(folder.file("out/spec.yaml"), kSpec);
  write_file(folder.file("out/runs.jsonl"), "{\"key\": 1}\n");
  const auto answer = experiment(folder.arguments("--resume"));
  CHECK(answer.exit_code == 1);
  CHECK_THAT(answer.text, contains_text("runs.jsonl:1: this is no run of weft experiment"));
}

TEST_CASE("a run that fails is reported, and the others are run", "[experiment]") {
  const Folder folder;
  write_file(folder.file("spec.yaml"),
             "name: x\nmachines: '1 sockets x 2 cores, 3 gpus'\nrepeats: 1\nworkloads:\n"
             "  - {name: stencil, parameters: {n: [2, 8]}, devices: gpus}\n");
  const auto answer = experiment(folder.arguments());
  CHECK(answer.exit_code == 1);
  CHECK_THAT(answer.text, contains_text("1 of 2 points failed"));
  CHECK_THAT(answer.text, contains_text("n = 2 has no row for each of 3 devices"));
  const json results = json::parse(read_file(folder.file("out/results.json")));
  CHECK(results["points"].size() == 2);
  CHECK(results["points"][1]["runs"] == 1);
  CHECK_THAT(read_file(folder.file("out/report.html")), contains_text("has no row for each"));
  // What failed is tried again.
  CHECK(experiment(folder.arguments("--resume")).exit_code == 1);
  CHECK(lines_of(folder.file("out/runs.jsonl")).size() == 3);
}

TEST_CASE("what cannot be run is said", "[experiment]") {
  const Folder folder;
  const auto with = [&](const std::string& text) {
    std::filesystem::remove_all(folder.file("out"));
    write_file(folder.file("spec.yaml"), "name: x\nworkloads: gemm\nrepeats: 1\n" + text);
    const auto answer = experiment(folder.arguments());
    CHECK(answer.exit_code == 1);
    return answer.text;
  };
  CHECK_THAT(with("machines: laptop\nengines: real\n"),
             contains_text("the engine real runs on the live machine only"));
  // Emulated GPUs are not this machine's, whatever the environment asks for.
  CHECK_THAT(with("engines: real\ndevices: gpu0,gpu1,gpu2,gpu3,gpu4,gpu5,gpu6,gpu7,gpu8\n"),
             contains_text("there is no gpu"));
  CHECK_THAT(with("machines: no such machine\n"), contains_text("spec.yaml:4: machines: "));
  CHECK_THAT(with("machines:\n  - {machine: laptop, remove: gpu7}\n"),
             contains_text("spec.yaml:5: machines: \"gpu7\": is not there"));
  CHECK_THAT(experiment("/nowhere.yaml").text, contains_text("/nowhere.yaml: cannot be read"));
  CHECK_THAT(experiment("").text, contains_text("wants a spec"));
}

TEST_CASE("simulated points are as slow as their calibration, and results name it",
          "[experiment]") {
  const Folder folder;
  Calibration slow;
  slow.submission_ns = {1e9, 1e9, 1e9, 1};
  slow.notice_ns = {0, 0, 0, 1};
  std::filesystem::create_directories(folder.file("beside"));
  write_file(folder.file("beside/slow.json"), write_calibration(slow));
  write_file(folder.file("spec.yaml"), R"(name: x
machines:
  - {machine: "1 sockets x 2 cores, 2 gpus", label: as assumed}
  - {machine: "1 sockets x 2 cores, 2 gpus", label: as measured, calibration: beside/slow.json}
engines: simulated
workloads: gemm
repeats: 1
)");
  const auto answer = experiment(folder.arguments());
  INFO(answer.text);
  REQUIRE(answer.exit_code == 0);
  CHECK_THAT(answer.text, contains_text("as measured, calibration = beside/slow.json"));
  const json results = json::parse(read_file(folder.file("out/results.json")));
  REQUIRE(results["points"].size() == 2);
  const json assumed = results["points"][0], measured = results["points"][1];
  CHECK(assumed["options"].empty());
  CHECK(measured["options"]["calibration"] == "beside/slow.json");
  CHECK(results["runs"][1]["options"]["calibration"] == "beside/slow.json");
  // Each op is submitted a second of virtual time after the one before.
  const double ops = measured["ops"];
  REQUIRE(ops > 1);
  CHECK(assumed["seconds"]["median"] < 0.1);
  CHECK(measured["seconds"]["median"].get<double>() >= ops - 1);
  CHECK_THAT(read_file(folder.file("out/report.html")), contains_text("beside/slow.json"));
  CHECK_THAT(lines_of(folder.file("out/results.csv"))[2],
             contains_text("calibration=beside/slow.json"));

  write_file(folder.file("beside/slow.json"), "{\"weft_calibration\": 99}");
  const auto refused = experiment(folder.arguments("--resume"));
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.text, contains_text("beside/slow.json: weft_calibration: version 99"));
  CHECK(count_of(refused.text, "\n") == 1);
}

TEST_CASE("a dry run says what would be run and runs nothing", "[experiment]") {
  const Folder folder;
  const auto answer = experiment(folder.arguments("--dry-run"));
  CHECK(answer.exit_code == 0);
  CHECK_THAT(answer.text, contains_text("12 points, 2 runs each: 24 runs; nothing was run"));
  CHECK_THAT(answer.text,
             contains_text("two | emulated | gemm | n=48,tile=16,placement=owner | gpus | \n"));
  CHECK(!std::filesystem::exists(folder.file("out")));
}

TEST_CASE("the workloads are listed", "[experiment]") {
  const auto answer = experiment("--list");
  CHECK(answer.exit_code == 0);
  for (const auto& workload : workloads::all())
    CHECK_THAT(answer.text, contains_text(workload.name + ": " + workload.description));
}

TEST_CASE("the spec that comes with weft runs", "[experiment]") {
  const TemporaryFolder folder("experiment_shipped");
  const auto answer =
      experiment(std::string(WEFT_SPECS) + "/two_machines.yaml --out " + folder.file("out"));
  INFO(answer.text);
  CHECK(answer.exit_code == 0);
  const json results = json::parse(read_file(folder.file("out/results.json")));
  CHECK(results["points"].size() == 2 * (2 * (3 + 1) + 3));
  CHECK(results["left_out"].empty());
  CHECK(structure_error(read_file(folder.file("out/report.html"))) == "");
}

TEST_CASE("every spec that comes with weft can be read", "[experiment]") {
  std::size_t specs = 0;
  for (const auto& file : std::filesystem::directory_iterator(WEFT_SPECS)) {
    const auto answer = experiment(file.path().string() + " --dry-run");
    INFO(file.path() << ": " << answer.text);
    CHECK(answer.exit_code == 0);
    ++specs;
  }
  CHECK(specs >= 2);
}

TEST_CASE("medians, spreads and what differs are taken from the runs", "[experiment]") {
  Spec spec = parse_spec("name: x\nmachines: [laptop, gh200]\nworkloads: gemm\n", "x.yaml");
  const auto points = expand(spec);
  std::vector<RunRecord> records;
  for (const Point& point : points)
    for (int repeat = 0; repeat < 4; ++repeat) {
      records.push_back(record_of(point, repeat));
      records.back().result.seconds = repeat == 0 ? 5 : repeat;  // 5, 1, 2, 3
    }
  records.back().error = "lost";
  const auto results = results_of(points, records);
  REQUIRE(results.size() == 2);
  CHECK(results[0].median == Approx(2.5));
  CHECK(results[0].least == 1);
  CHECK(results[0].most == 5);
  CHECK(results[0].spread() == Approx(1.6));
  CHECK(results[1].runs.size() == 3);
  CHECK(results[1].median == 2);
  CHECK(results[1].error == "lost");
  CHECK(varying(results) == std::vector<std::string>{"machine"});
  CHECK(label_of(*results[1].any, {"machine", "n"}) == "gh200, n = 192");
}

TEST_CASE("a run is the same when it is read back", "[experiment]") {
  Spec spec = parse_spec("name: x\nworkloads: gemm\noptions: {p2p: false}\n", "x.yaml");
  RunRecord record = record_of(expand(spec)[0], 2);
  record.device_names = {"gpu0", "gpu1"};
  record.result = {0.5, 1e9, 2e6, 7, "checked: all", {{"ratio", 1.25}}};
  TraceData data;
  data.tracks = {{"gpu0", "compute 0", TrackKind::Gpu}, {"link0", "to gpu0", TrackKind::Link}};
  data.spans = {{1, 0, SpanKind::Kernel, false, "a", 1000, 3000, 0},
                {2, 1, SpanKind::Copy, false, "copy", 2000, 5000, 64},
                {3, 0, SpanKind::Kernel, false, "b", 4000, 5000, 0}};
  add_recording(record, data, true);
  const auto written = to_json(record, true);
  CHECK(to_json(record_from(written), true) == written);
  REQUIRE(record.timeline);
  CHECK(record.timeline->seconds == Approx(4e-6));
  REQUIRE(record.timeline->lanes.size() == 2);
  CHECK(record.timeline->lanes[0].busy == Approx(0.75));
  CHECK(record.timeline->lanes[0].bars.size() == 2);
  const auto& use = record.timeline->lanes[1].use;
  REQUIRE(use.size() == Timeline::kBins);
  CHECK(use[0] == 0);
  CHECK(use[24] == 0);
  CHECK(use[26] == 1);
  CHECK(use[99] == 1);
  CHECK(record.activity.hidden == Approx(2.0 / 3));
}

}  // namespace
}  // namespace weft::experiment
