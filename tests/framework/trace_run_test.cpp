// A random program is recorded on emulated GPUs; what the trace file says is checked.
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <weft/weft.hpp>

#include "framework/trace_chrome.hpp"
#include "framework/trace_summary.hpp"
#include "support/catch.hpp"

namespace weft {
namespace {

using nlohmann::json;

RuntimeOptions recorded() {
  RuntimeOptions options;
  options.gpus = GpuMode::Emulated;
  options.emulated_gpus = 2;
  options.emulated = EmulatedOptions{};
  options.emulated->launch = std::chrono::microseconds(20);
  options.trace = true;
  return options;
}

// 300 matmuls of random tensors on random devices, a tenth of them brought to the host.
void run_random_program(Runtime& rt, std::uint32_t seed) {
  std::mt19937 random(seed);
  auto below = [&](std::size_t n) { return random() % n; };
  const auto devices = rt.devices();
  std::vector<Tensor<float>> tensors;
  for (std::uint64_t i = 0; i < 6; ++i)
    tensors.push_back(rt.uniform({32, 32}, devices[below(devices.size())], i));
  std::vector<HostArray<float>> results;
  for (int i = 0; i < 300; ++i) {
    const Device& device = devices[below(devices.size())];
    const auto& a = tensors[below(tensors.size())];
    const auto& b = tensors[below(tensors.size())];
    auto& c = tensors[below(tensors.size())];
    c = device.matmul(a, b);
    if (below(10) == 0) results.push_back(c.to_host());
  }
  when_all(results).wait();
  rt.wait_idle();
}

std::int64_t ns(const json& us) {
  return std::llround(1e3 * us.get<double>());
}

void check_trace(const json& trace) {
  struct Span {
    std::int64_t start, end;
  };
  std::map<std::pair<int, int>, std::vector<Span>> lanes;
  std::map<std::uint64_t, Span> ops;
  std::map<std::pair<std::string, std::uint64_t>, int> arrows;
  for (const json& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    const std::string category = event["cat"];
    if (phase == "s") ++arrows[{category, event["id"]}];
    if (phase == "f") --arrows[{category, event["id"]}];
    if (phase != "X") continue;
    const Span span{ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])};
    lanes[{event["pid"], event["tid"]}].push_back(span);
    if (category == "submit") continue;
    const auto [known, is_new] = ops.try_emplace(event["args"]["op"], span);
    if (is_new) continue;
    known->second.start = std::min(known->second.start, span.start);
    known->second.end = std::max(known->second.end, span.end);
  }
  for (auto& [lane, spans] : lanes) {
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return std::pair(a.start, a.end) < std::pair(b.start, b.end);
    });
    for (std::size_t i = 1; i < spans.size(); ++i) REQUIRE(spans[i - 1].end <= spans[i].start);
  }
  for (const auto& [arrow, open] : arrows) REQUIRE(open == 0);
  std::size_t waited = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || !event["args"].contains("after")) continue;
    for (const json& producer : event["args"]["after"]) {
      if (!ops.count(producer)) continue;
      ++waited;
      REQUIRE(ops.at(producer).end <= ns(event["ts"]));
    }
  }
  CHECK(waited > 0);
}

TEST_CASE("in a recorded run lanes are in order and nothing starts before what it waits for",
          "[trace]") {
  Runtime rt(recorded());
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    run_random_program(rt, seed);
    const TraceData data = rt.tracer()->collect();
    std::ostringstream text;
    write_chrome_trace(data, text);
    check_trace(json::parse(text.str()));
    CHECK(data.dropped == 0);
    CHECK(data.spans.size() >= 300);

    const TraceSummary summary = summarise(data);
    CHECK(summary.failed == 0);
    CHECK(summary.transfer_seconds > 0);
    CHECK(summary.hidden_seconds + summary.exposed_seconds == Approx(summary.transfer_seconds));
    CHECK(summary.lower_bound_seconds <= summary.wall_seconds);
    CHECK(summary.critical_path_seconds <= summary.wall_seconds);
    rt.tracer()->clear();
  }
}

TEST_CASE("what waits for a collective waits for its parts", "[trace]") {
  for (const bool mixed : {false, true}) {  // GPUs wait on the device, a socket for done
    Runtime rt(recorded());
    const std::vector<Device> members{rt.gpu(0), mixed ? rt.socket(0) : rt.gpu(1)};
    const auto all = rt.collective(members);
    const auto a =
        members[0].matmul(rt.uniform({64, 64}, members[0], 1), rt.uniform({64, 64}, members[0], 2));
    const auto b = rt.uniform({64, 64}, members[1], 3);
    all.all_reduce<float>({a, b});
    members[1].matmul(b, b).to_host().wait();
    rt.wait_idle();
    const TraceData data = rt.tracer()->collect();
    std::ostringstream text;
    write_chrome_trace(data, text);
    check_trace(json::parse(text.str()));
    std::map<std::uint64_t, std::string> names;
    for (const auto& span : data.spans) names[span.op] = span.name;
    std::size_t before = 0, after = 0;
    for (const auto& cause : data.causes) {
      before += names[cause.producer] == "matmul" && names[cause.op] == "copy";
      after += names[cause.producer] == "collective_step" && names[cause.op] == "matmul";
      CHECK(names.count(cause.producer) == 1);
    }
    CHECK(before > 0);
    CHECK(after > 0);
  }
}

TEST_CASE("a failed op's span says so", "[trace]") {
  RuntimeOptions options = recorded();
  options.emulated->fault = [](const LaneOp& op) -> std::optional<std::string> {
    if (op.name == "matmul") return "injected";
    return std::nullopt;
  };
  Runtime rt(options);
  const auto x = rt.uniform({8, 8}, rt.gpu(0));
  CHECK_THROWS_AS(rt.gpu(0).matmul(x, x).future().wait(), OpError);
  rt.wait_idle();
  std::size_t failed = 0;
  for (const auto& span : rt.tracer()->collect().spans)
    if (span.failed) {
      ++failed;
      CHECK(span.name == "matmul");
    }
  CHECK(failed == 1);
}

}  // namespace
}  // namespace weft
