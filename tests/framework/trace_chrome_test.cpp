#include "framework/trace_chrome.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "support/catch.hpp"

namespace weft {
namespace {

using nlohmann::json;

json written(const TraceData& data) {
  std::ostringstream text;
  write_chrome_trace(data, text);
  return json::parse(text.str());
}

std::vector<json> with_phase(const json& trace, const std::string& phase) {
  std::vector<json> found;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == phase) found.push_back(event);
  return found;
}

TraceData copy_then_kernel() {
  TraceData data;
  data.tracks = {{"gpu0", "compute 0", TrackKind::Gpu},
                 {"link0", "to gpu0", TrackKind::Link},
                 {"callers", "thread 1", TrackKind::Submitter}};
  data.spans = {{1, 1, SpanKind::Copy, false, "copy", 1500, 4000, 64},
                {2, 0, SpanKind::Kernel, true, "mat\"mul\"\n", 4000, 9001, 0}};
  data.submissions = {{1, 2, 100, "copy"}, {2, 2, 300, "matmul"}, {3, 2, 400, "sum"}};
  data.causes = {{2, 1, false}, {3, 2, false}};
  data.dropped = 7;
  return data;
}

TEST_CASE("an empty recording is a well-formed trace", "[trace]") {
  CHECK(written(TraceData{})["traceEvents"].empty());
}

TEST_CASE("actors become processes, lanes their threads", "[trace]") {
  const json trace = written(copy_then_kernel());
  std::map<std::string, int> process;
  std::set<std::string> threads;
  for (const json& event : with_phase(trace, "M")) {
    if (event["name"] == "process_name") process[event["args"]["name"]] = event["pid"];
    if (event["name"] == "thread_name") threads.insert(event["args"]["name"]);
  }
  CHECK(process.size() == 3);
  CHECK(threads == std::set<std::string>{"compute 0", "to gpu0", "thread 1"});
  CHECK(trace["otherData"]["dropped"] == 7);
  for (const json& event : with_phase(trace, "X"))
    if (event["cat"] == "copy") {
      CHECK(event["pid"] == process["link0"]);
    }
}

TEST_CASE("spans carry times, names, ids and bytes", "[trace]") {
  std::map<std::string, json> by_category;
  for (const json& event : with_phase(written(copy_then_kernel()), "X"))
    by_category[event["cat"]] = event;
  const json& copy = by_category["copy"];
  CHECK(copy["ts"] == 1.5);
  CHECK(copy["dur"] == 2.5);
  CHECK(copy["args"]["bytes"] == 64);
  const json& kernel = by_category["kernel"];
  CHECK(kernel["name"] == "mat\"mul\"\n");
  CHECK(kernel["ts"] == 4.0);
  CHECK(kernel["dur"] == 5.001);
  CHECK(kernel["args"]["op"] == 2);
  CHECK(kernel["args"]["failed"] == true);
  CHECK(kernel["args"]["after"] == json::array({1}));
}

TEST_CASE("arrows lead from submission to copy to kernel", "[trace]") {
  const json trace = written(copy_then_kernel());
  const auto starts = with_phase(trace, "s"), ends = with_phase(trace, "f");
  REQUIRE(starts.size() == 3);  // two submissions that ran, one cause between ops that ran
  REQUIRE(ends.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(starts[i]["id"] == ends[i]["id"]);
    CHECK(starts[i]["cat"] == ends[i]["cat"]);
    CHECK(starts[i]["ts"] <= ends[i]["ts"]);
  }
  CHECK(starts[2]["cat"] == "data");
  CHECK(starts[2]["ts"] == 3.999);  // within the copy
  CHECK(ends[2]["ts"] == 4.0);
}

TEST_CASE("submissions on one thread do not overlap", "[trace]") {
  double end = 0;
  std::map<double, double> submissions;
  for (const json& event : with_phase(written(copy_then_kernel()), "X"))
    if (event["cat"] == "submit") submissions[event["ts"]] = event["dur"];
  REQUIRE(submissions.size() == 3);
  for (const auto& [ts, dur] : submissions) {
    CHECK(ts >= end);
    end = ts + dur - 1e-9;
  }
}

TEST_CASE("a name that is not UTF-8 does not spoil the file", "[trace]") {
  TraceData data = copy_then_kernel();
  data.spans[0].name = "bad \xff byte";
  CHECK_NOTHROW(written(data));
}

}  // namespace
}  // namespace weft
