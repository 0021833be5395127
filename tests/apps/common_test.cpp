#include <cstdlib>
#include <fstream>
#include <sstream>

#include "apps/common/options.hpp"
#include "apps/common/output.hpp"
#include "apps/common/progress.hpp"
#include "apps/common/table.hpp"
#include "support/catch.hpp"

namespace weft::apps {
namespace {

std::string content_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string temporary(const std::string& name) {
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/weft_common_test_" + name;
}

TEST_CASE("edits change the machine a command runs on", "[apps]") {
  CommonOptions options;
  CHECK_FALSE(to_runtime_options(options, false).machine);
  options.machine = "2 sockets x 2 cores, 2 gpus, nvlink";
  options.edits.add = {"gpu like gpu0 on socket1"};
  options.edits.set = {"gpu2.memory.bytes=40GB"};
  const auto made = to_runtime_options(options, false).machine;
  REQUIRE(made);
  REQUIRE(made->gpus.size() == 3);
  CHECK(made->memories[made->gpus[2].memory.value].bytes == std::size_t{40} << 30);
}

TEST_CASE("this machine with edits is a described one", "[apps]") {
  CommonOptions options;
  options.edits.set = {"mem0.bytes=1 GB"};
  const auto made = to_runtime_options(options, false).machine;
  REQUIRE(made);
  CHECK(made->source == "live, edited");
  CHECK(made->memories[0].bytes == std::size_t{1} << 30);
  options.edits.set = {"gpu77.model=x"};
  CHECK_THROWS_WITH(to_runtime_options(options, false), contains_text("gpu77"));
}

TEST_CASE("durations are said in the unit that fits", "[apps]") {
  CHECK(format_seconds(0.00085) == "850 µs");
  CHECK(format_seconds(0.0123) == "12.30 ms");
  CHECK(format_seconds(0.85) == "850 ms");
  CHECK(format_seconds(4.561) == "4.56 s");
  CHECK(format_seconds(125) == "2 min 05 s");
}

TEST_CASE("a progress line has share, rate and time left", "[apps]") {
  std::FILE* nowhere = std::tmpfile();
  Progress progress(nowhere, "epoch 1", 200, "samples");
  CHECK(progress.line(50, std::chrono::seconds(10), 8, "loss 0.5") ==
        "epoch 1 [##......]  25 %  5.00 samples/s  30.00 s left  loss 0.5");
  CHECK(progress.line(0, std::chrono::seconds(1), 4, "") == "epoch 1 [....]   0 %");
  CHECK(progress.line(400, std::chrono::seconds(1), 0, "") ==
        "epoch 1  100 %  400 samples/s  0 µs left");
  progress.finish();
  CHECK(std::ftell(nowhere) == 0);
  std::fclose(nowhere);
}

TEST_CASE("a table lines up its columns", "[apps]") {
  Table table({"what", "time"});
  table.add({"matmul", "850 µs"});
  table.add({"a"});
  CHECK(table.text(1) ==
        " what      time\n"
        " ------  ------\n"
        " matmul  850 µs\n"
        " a\n");
}

TEST_CASE("results go to the file that was named", "[apps]") {
  CommonOptions options;
  options.json = temporary("result.json");
  options.trace = temporary("trace.json");
  {
    Output output(options);
    CHECK(output.text() == stdout);
    output.write_json("{\"a\":1}");
    RuntimeOptions made = to_runtime_options(options, false);
    CHECK(made.trace);
    made.gpus = GpuMode::None;
    Runtime rt(made);
    rt.zeros({4}, rt.socket(0)).future().wait();
    rt.wait_idle();
    output.write_trace(rt);
  }
  CHECK(content_of(options.json) == "{\"a\":1}\n");
  CHECK(content_of(options.trace).find("\"fill\"") != std::string::npos);
  std::remove(options.json.c_str());
  std::remove(options.trace.c_str());
}

TEST_CASE("with JSON on standard output, text goes to standard error", "[apps]") {
  CommonOptions options;
  options.json = "-";
  CHECK(Output(options).text() == stderr);
}

TEST_CASE("a file that cannot be written is named before the work", "[apps]") {
  CommonOptions options;
  options.json = "/nowhere/result.json";
  std::string message;
  try {
    Output output(options);
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  CHECK(message ==
        "--json /nowhere/result.json: cannot write this file: No such file or directory");
}

}  // namespace
}  // namespace weft::apps
