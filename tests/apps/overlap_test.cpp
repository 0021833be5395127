// Runs `weft overlap` as a user does.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/overlap/reference.hpp"
#include "support/catch.hpp"

namespace {

using nlohmann::json;

const std::string kFolder = WEFT_TEST_FOLDER;

struct Outcome {
  int exit_code = 0;
  std::string out, err;
};

std::string content_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Outcome weft(const std::string& arguments) {
  const std::string out = kFolder + "/overlap_out.txt", err = kFolder + "/overlap_err.txt";
  // Emulated GPUs, also where there are real ones.
  const std::string command = "WEFT_GPUS=emulated:2 " + std::string(WEFT_COMMAND) + " " +
                              arguments + " >" + out + " 2>" + err;
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(out), content_of(err)};
}

std::map<std::string, json> by_name(const json& result) {
  std::map<std::string, json> rows;
  for (const json& row : result["experiments"]) rows[row["name"]] = row;
  return rows;
}

TEST_CASE("paced emulated GPUs overlap with each other and with their links", "[apps]") {
  const std::string path = kFolder + "/overlap.json";
  const std::string arguments =
      "overlap --n 64 --ops 20 --repeat 3 --emulated launch=4ms,link=10MB --json " + path;
  // One after the other would be 2, 1.8, 3 and 2. Best of some tries: others may need the machine.
  const std::map<std::string, double> allowed{{"two_gpus/both", 1.4},
                                              {"copy/run_and_copy", 1.4},
                                              {"all/at_once", 1.5},
                                              {"small/side_by_side", 1.4}};
  std::map<std::string, double> best;
  double hidden = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const Outcome outcome = weft(arguments);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.out.find("both at once") != std::string::npos);
    CHECK(outcome.out.find("gpu1 (emulated)") != std::string::npos);
    auto rows = by_name(json::parse(content_of(path)));
    REQUIRE(rows.size() == 13);
    for (auto& [name, row] : rows) {
      INFO(name);
      const double ratio = row["ratio"];
      CHECK(row["seconds"] > 0);
      CHECK(ratio == Approx(row["seconds"].get<double>() / row["ideal_seconds"].get<double>()));
      best[name] = attempt == 0 ? ratio : std::min(best[name], ratio);
    }
    CHECK(rows["copy/copy"]["hidden"] < 0.1);
    hidden = std::max(hidden, rows["copy/run_and_copy"]["hidden"].get<double>());
    const bool good = std::all_of(allowed.begin(), allowed.end(), [&](const auto& limit) {
      return best[limit.first] < limit.second;
    });
    if (good && hidden > 0.7) break;
  }
  for (const auto& [name, limit] : allowed) {
    INFO(name);
    CHECK(best[name] < limit);
  }
  CHECK(hidden > 0.7);
}

TEST_CASE("replayed matmuls give right results in every experiment", "[apps]") {
  for (const char* more :
       {"", " --to pageable", " --dtype f64", " --simulate --machine dgx-a100"}) {
    const Outcome outcome = weft(
        "overlap --plan --only two_gpus,copy,copy_both,all,small --n 24 --ops 5 --repeat 2 "
        "--json -" +
        std::string(more));
    INFO(more << ": " << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const json result = json::parse(outcome.out);
    CHECK(result["plan"] == true);
    CHECK(result["experiments"].size() == 16);
    CHECK(outcome.err.find("recorded once and replayed") != std::string::npos);
    CHECK(outcome.err.find("Results checked against dot products") != std::string::npos);
  }
}

TEST_CASE("with --json - standard output is JSON alone", "[apps]") {
  const Outcome outcome =
      weft("overlap --only two_gpus --n 16 --ops 3 --repeat 1 --dtype f64 --json -");
  REQUIRE(outcome.exit_code == 0);
  const json result = json::parse(outcome.out);
  CHECK(result["experiments"].size() == 3);
  CHECK(result["dtype"] == "f64");
  CHECK(outcome.err.find("both at once") != std::string::npos);
}

TEST_CASE("the trace of a run parses and has copies and kernels", "[apps]") {
  const std::string path = kFolder + "/overlap_trace.json";
  REQUIRE(weft("overlap --only copy --n 16 --ops 5 --repeat 1 --trace " + path).exit_code == 0);
  std::map<std::string, int> spans;
  const json trace = json::parse(content_of(path));
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X") ++spans[event["cat"]];
  CHECK(spans["kernel"] == 20);  // 2 × 2 runs of 5
  CHECK(spans["copy"] >= 20);    // and the input's way to gpu0
}

TEST_CASE("results are right without pacing too", "[apps]") {
  const Outcome outcome = weft("overlap --n 200 --ops 4 --repeat 1 --emulated launch=0");
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find("they share them") != std::string::npos);
}

TEST_CASE("experiments that need more GPUs than there are say so", "[apps]") {
  const Outcome one = weft("overlap --gpus emulated:1 --n 16 --ops 2 --repeat 1");
  CHECK(one.exit_code == 0);
  CHECK(one.out.find("needs 2 GPUs and there are 1") != std::string::npos);
  CHECK(one.out.find("run and copy") != std::string::npos);
  const Outcome none = weft("overlap --gpus none");
  CHECK(none.exit_code != 0);
  CHECK(none.err.find("give it GPUs with --gpus") != std::string::npos);
}

TEST_CASE("both GPUs run and copy at once when asked for", "[apps]") {
  const Outcome outcome = weft("overlap --only copy_both --n 40 --ops 3 --repeat 1 --json -");
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const json result = json::parse(outcome.out);
  auto rows = by_name(result);
  CHECK(rows.size() == 3);
  for (const char* name : {"copy_both/gpu0", "copy_both/gpu1", "copy_both/both"})
    CHECK(rows[name]["seconds"] > 0);
  CHECK(result["to"] == "pinned");
  CHECK(result["precision"] == "fp32");
}

TEST_CASE("results come to the program's own memory, or it is said that they cannot", "[apps]") {
  const Outcome outcome =
      weft("overlap --only copy,copy_both --to pageable --n 40 --ops 3 --repeat 2 --json -");
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);  // and each result was checked
  const json result = json::parse(outcome.out);
  CHECK(result["to"] == "pageable");
  CHECK(result["experiments"].size() == 6);
}

TEST_CASE("a precision is of f32 products, and results still are right", "[apps]") {
  CHECK(weft("overlap --precision tf32 --dtype f64").err.find("--dtype is f64") !=
        std::string::npos);
  CHECK(weft("overlap --precision fp16").exit_code != 0);
  const Outcome outcome =
      weft("overlap --only copy --precision tf32 --n 40 --ops 2 --repeat 1 --json -");
  INFO(outcome.err);
  if (outcome.exit_code == 0)
    CHECK(json::parse(outcome.out)["precision"] == "tf32");
  else  // this build's runtime has no such option
    CHECK(outcome.err.find("--precision") != std::string::npos);
}

TEST_CASE("a result is taken for right only within what its precision allows", "[apps]") {
  weft::RuntimeOptions options;
  options.gpus = weft::GpuMode::None;
  const weft::Runtime rt(options);
  const weft::apps::Reference<float> exact(rt, 30, weft::Precision::Fp32);
  const weft::apps::Reference<float> rounded(rt, 30, weft::Precision::Tf32);
  auto product = rt.socket(0).matmul(exact.tensor(), exact.tensor()).to_host().to_vector();
  exact.check(product);
  for (float& value : product) value += 1e-3f;
  CHECK_THROWS_WITH(exact.check(product), contains_text("wrong result"));
  rounded.check(product);
  for (float& value : product) value += 1.0f;
  CHECK_THROWS_WITH(rounded.check(product), contains_text("wrong result"));
  exact.spoil(product);
  CHECK_THROWS_WITH(rounded.check(product), contains_text("wrong result"));
}

TEST_CASE("wrong options are named", "[apps]") {
  CHECK(weft("overlap --dtype f16").err.find("f16") != std::string::npos);
  CHECK(weft("overlap --only everything").exit_code != 0);
  CHECK(weft("overlap --emulated speed=3").err.find("speed") != std::string::npos);
  const Outcome outcome = weft("overlap --trace /nowhere/t.json");
  CHECK(outcome.exit_code != 0);
  CHECK(outcome.err.find("/nowhere/t.json") != std::string::npos);
}

}  // namespace
