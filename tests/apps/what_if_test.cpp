// What would help: the ranking, what programs report, and `weft what-if` as a user runs it.
#include <cstdlib>

#include "apps/weft_command.hpp"
#include "apps/what_if/gains.hpp"
#include "apps/what_if/program.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

namespace weft::apps {
namespace {

using nlohmann::json;
using test::has;
using test::thrown;

// Copies of large products over a slow link.
const std::string kOverlap =
    "overlap --machine \"1 sockets x 2 cores, 1 gpus, pcie 0.5 GB/s\" --data none --only copy "
    "--repeat 1 --n 1024 --ops 8";

struct Cleared {
  Cleared() {
    for (const char* name : {"WEFT_SIMULATE", "WEFT_SIMULATED_SCALE", "WEFT_SIMULATED_REPORT"})
      unsetenv(name);
  }
} const cleared;

test::Answer what_if(const std::string& arguments) {
  return test::run_weft(WEFT_COMMAND, "what-if " + arguments);
}

// What it writes with `--json`.
json document(const std::string& arguments) {
  const auto path =
      std::filesystem::temp_directory_path() / ("weft_what_if_" + std::to_string(getpid()));
  const test::Answer answer = what_if("--json " + path.string() + " " + arguments);
  INFO(answer.text);
  REQUIRE(answer.exit_code == 0);
  std::ifstream file(path);
  json document = json::parse(file);
  std::filesystem::remove(path);
  return document;
}

TEST_CASE("things are tried one at a time and ranked by what they save", "[what-if]") {
  std::vector<std::string> tried;
  const WhatIf what_if = try_each(10, {"link:pcie", "gpu.flops", "gpu.launch", "socket.cores"}, 2,
                                  [&](const std::string& scale) {
                                    tried.push_back(scale);
                                    if (scale == "link:pcie=2") return 9.0;
                                    if (scale == "gpu.flops=2") return 6.0;
                                    return scale == "gpu.launch=2" ? 9.995 : 10.1;
                                  });
  CHECK(tried ==
        std::vector<std::string>{"link:pcie=2", "gpu.flops=2", "gpu.launch=2", "socket.cores=2"});
  REQUIRE(what_if.gains.size() == 4);
  CHECK(what_if.gains[0].target == "gpu.flops");
  CHECK(what_if.saved(what_if.gains[0]) == Approx(0.4));
  CHECK(what_if.gains[3].target == "socket.cores");
  CHECK(what_if.best(5).size() == 2);  // half a thousandth is nothing
  CHECK(what_if.best(1).size() == 1);
  const std::string table = table_of(what_if, 5);
  CHECK(has(table, "gpu.flops × 2     10.00 s  -> 6.00 s  −40.0 %"));
  CHECK(has(table, "2 others save less"));
  CHECK(has(table_of({2, 10, {{"gpu.flops", 10}}}, 5), "none of 1 things saves"));
}

TEST_CASE("a change says whether it multiplies or divides", "[what-if]") {
  CHECK(change_text("link:pcie", 2) == "link:pcie × 2");
  CHECK(change_text("link:pcie.latency", 2) == "link:pcie.latency / 2");
  CHECK(change_text("gpu.launch", 1.5) == "gpu.launch / 1.5");
  CHECK(saved_text(0.204) == "−20.4 %");
  CHECK(saved_text(-0.01) == "+1.0 %");
}

TEST_CASE("reports of several runtimes are taken together", "[what-if]") {
  const SimulatedRun run =
      parse_report("0.5\tlink:pcie\tgpu.flops\n0.25\tgpu.flops\tsocket.cores\n");
  CHECK(run.seconds == 0.75);
  CHECK(run.targets == std::vector<std::string>{"link:pcie", "gpu.flops", "socket.cores"});
  CHECK(has(thrown([] { parse_report("soon\tlink:pcie\n"); }), "begins with \"soon\""));
}

TEST_CASE("weft what-if says what bounds a command", "[what-if]") {
  const json first = document("-- " + kOverlap);
  CHECK(first["factor"] == 2);
  CHECK(first["gains"][0]["target"] == "link:pcie");
  CHECK(first["gains"][0]["saved"].get<double>() > 0.3);
  CHECK(first["gains"][0]["saved"].get<double>() <= 0.5);
  CHECK(first["gains"].size() > 3);
  CHECK(document("-- " + kOverlap) == first);  // to the nanosecond

  const json one = document("--factor 4 --only gpu.flops -- " + kOverlap);
  CHECK(one["seconds"] == first["seconds"]);
  REQUIRE(one["gains"].size() == 1);
  CHECK(one["gains"][0]["target"] == "gpu.flops");

  const test::Answer answer = what_if("--top 1 -- " + kOverlap);
  CHECK(answer.exit_code == 0);
  CHECK(has(answer.text, "link:pcie × 2"));
  CHECK(has(answer.text, " others save less"));
}

TEST_CASE("any program built on weft can be asked", "[what-if]") {
  const json first = document(std::string("-- ") + WEFT_COMMAND + " " + kOverlap);
  CHECK(first["gains"][0]["target"] == "link:pcie");
}

TEST_CASE("what-if says why it cannot answer", "[what-if]") {
  const auto refused = [](const std::string& arguments) {
    const test::Answer answer = what_if(arguments);
    CHECK(answer.exit_code == 1);
    return answer.text;
  };
  CHECK(has(refused(""), "wants a program after --"));
  CHECK(has(refused("-- true"), "true: had no simulated weft::Runtime"));
  CHECK(has(refused("-- false"), "false: ended with exit code 1"));
  CHECK(has(refused("-- ./no_such_program"), "./no_such_program: cannot be started"));
  CHECK(has(refused("--only disks -- true"), "wanted link:KIND"));
  CHECK(has(refused("--only link:xgmi -- " + kOverlap), "this machine has no such thing"));
}

}  // namespace
}  // namespace weft::apps
