#include "apps/calibrate/recorder.hpp"

#include "support/catch.hpp"

using namespace weft;
using calibrate::Recorder;

namespace {

TraceData two_cores() {
  TraceData data;
  data.tracks = {{"socket0", "core 0", TrackKind::Socket},
                 {"socket0", "core 1", TrackKind::Socket},
                 {"gpu0", "compute 0", TrackKind::Gpu},
                 {"link0", "to gpu0", TrackKind::Link}};
  return data;
}

TraceData::Span kernel(std::uint64_t op, std::uint32_t track, const char* name, std::int64_t start,
                       std::int64_t end) {
  return {op, track, SpanKind::Kernel, false, name, start, end, 0};
}

const std::map<std::string, std::string> kModels{{"socket0", "a processor"}, {"gpu0", "a GPU"}};

}  // namespace

TEST_CASE("an op that two cores shared took from its start to its end", "[calibrate]") {
  TraceData data = two_cores();
  data.spans = {kernel(1, 0, "work", 1000, 5000), kernel(1, 1, "work", 2000, 4000)};
  data.costs = {{1, 100, 8, false, false}, {1, 100, 8, false, false}};
  Recorder recorder;
  recorder.add(data, kModels, "fp32");
  const auto kernels = recorder.kernels("a processor");
  REQUIRE(kernels.count("work") == 1);
  REQUIRE(kernels.at("work").size() == 1);
  const Calibration::Point& point = kernels.at("work").front();
  CHECK(point.flops == 100);
  CHECK(point.bytes == 8);
  CHECK(point.seconds.median == Approx(4e-6));
  CHECK(point.seconds.samples == 1);
  CHECK(point.cores == Approx(1.5));  // 6000 ns of cores in 4000
}

TEST_CASE("ops of one cost make one point, over several recordings", "[calibrate]") {
  Recorder recorder;
  for (std::int64_t ns : {3000, 1000, 2000}) {
    TraceData data = two_cores();
    data.spans = {kernel(1, 0, "work", 0, ns), kernel(2, 0, "work", 5000, 5000 + 10 * ns)};
    data.costs = {{1, 100, 8, false, false}, {2, 1000, 8, false, false}};
    recorder.add(data, kModels, "fp32");
  }
  const auto points = recorder.kernels("a processor").at("work");
  REQUIRE(points.size() == 2);
  CHECK(points[0].flops == 100);
  CHECK(points[0].seconds.least == Approx(1e-6));
  CHECK(points[0].seconds.median == Approx(2e-6));
  CHECK(points[0].seconds.most == Approx(3e-6));
  CHECK(points[0].seconds.samples == 3);
  CHECK(points[1].seconds.median == Approx(20e-6));
}

TEST_CASE("what a kernel computes in follows from its data and from the runtime", "[calibrate]") {
  TraceData data = two_cores();
  data.spans = {kernel(1, 2, "product", 0, 10), kernel(2, 2, "product", 20, 30),
                kernel(3, 2, "sum", 40, 50)};
  data.costs = {{1, 1, 1, false, true}, {2, 1, 1, true, true}, {3, 1, 1, false, false}};
  Recorder recorder;
  recorder.add(data, kModels, "bf16");
  const auto kernels = recorder.kernels("a GPU");
  REQUIRE(kernels.at("product").size() == 2);
  CHECK(kernels.at("product")[0].precision == "bf16");
  CHECK(kernels.at("product")[1].precision == "fp64");
  CHECK(kernels.at("sum")[0].precision == "fp32");
}

TEST_CASE("copies, failed ops and ops without a cost are left out", "[calibrate]") {
  TraceData data = two_cores();
  data.spans = {kernel(1, 0, "failed", 0, 10), kernel(2, 0, "unknown", 20, 30),
                kernel(3, 3, "copy", 40, 50), kernel(4, 0, "no time", 60, 60)};
  data.spans[0].failed = true;
  data.spans[2].kind = SpanKind::Copy;
  data.costs = {{1, 1, 1, false, false}, {3, 1, 1, false, false}, {4, 1, 1, false, false}};
  Recorder recorder;
  recorder.add(data, kModels, "fp32");
  CHECK(recorder.kernels("a processor").empty());
  CHECK(recorder.kernels("another").empty());
}
