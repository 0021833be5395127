#include "framework/trace_summary.hpp"

#include "support/catch.hpp"

namespace weft {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// socket0 core 0, gpu0 compute 0 and 1, link0 in both directions, a caller.
TraceData machine() {
  TraceData data;
  data.tracks = {
      {"socket0", "core 0", TrackKind::Socket}, {"gpu0", "compute 0", TrackKind::Gpu},
      {"gpu0", "compute 1", TrackKind::Gpu},    {"link0", "to gpu0", TrackKind::Link},
      {"link0", "to socket0", TrackKind::Link}, {"callers", "thread 1", TrackKind::Submitter}};
  return data;
}

void kernel(TraceData& data, std::uint64_t op, std::uint32_t track, std::int64_t start_ms,
            std::int64_t end_ms) {
  data.spans.push_back({op, track, SpanKind::Kernel, false, "k", start_ms * kMs, end_ms * kMs, 0});
}
void copy(TraceData& data, std::uint64_t op, std::uint32_t track, std::int64_t start_ms,
          std::int64_t end_ms, std::uint64_t bytes = 100) {
  data.spans.push_back(
      {op, track, SpanKind::Copy, false, "copy", start_ms * kMs, end_ms * kMs, bytes});
}

TEST_CASE("a recording without spans has nothing to say", "[trace]") {
  const TraceSummary summary = summarise(machine());
  CHECK(summary.wall_seconds == 0);
  CHECK(summary.actors.empty());
  CHECK(summary.hidden == 1);
}

TEST_CASE("lanes add up to actors: busy is their union, load their mean", "[trace]") {
  TraceData data = machine();
  kernel(data, 1, 1, 0, 6);
  kernel(data, 2, 2, 4, 8);
  kernel(data, 3, 0, 9, 10);
  const TraceSummary summary = summarise(data);
  CHECK(summary.wall_seconds == Approx(0.010));
  REQUIRE(summary.lanes.size() == 5);
  CHECK(summary.lanes[1].busy == Approx(0.6));
  CHECK(summary.lanes[2].busy_seconds == Approx(0.004));
  REQUIRE(summary.actors.size() == 3);
  CHECK(summary.actors[1].actor == "gpu0");
  CHECK(summary.actors[1].lanes == 2);
  CHECK(summary.actors[1].busy == Approx(0.8));
  CHECK(summary.actors[1].load == Approx(0.5));
  CHECK(summary.actors[0].busy == Approx(0.1));
  CHECK(summary.compute_seconds == Approx(0.009));
}

TEST_CASE("transfer time is hidden while any device computes", "[trace]") {
  TraceData data = machine();
  kernel(data, 1, 1, 2, 5);
  copy(data, 2, 3, 0, 4);   // 2 ms before the kernel, 2 ms under it
  copy(data, 3, 4, 3, 6);   // overlaps the other copy for 1 ms; 1 ms after the kernel
  copy(data, 4, 4, 8, 10);  // alone
  const TraceSummary summary = summarise(data);
  CHECK(summary.transfer_seconds == Approx(0.008));
  CHECK(summary.hidden_seconds == Approx(0.003));
  CHECK(summary.exposed_seconds == Approx(0.005));
  CHECK(summary.hidden == Approx(3.0 / 8));
  CHECK(summary.transfer_bytes == 300);
}

TEST_CASE("the critical path is the longest chain of causes", "[trace]") {
  TraceData data = machine();
  kernel(data, 1, 1, 0, 2);
  kernel(data, 2, 2, 0, 5);
  copy(data, 3, 3, 2, 6);
  kernel(data, 4, 1, 7, 8);
  data.causes = {{3, 1, false}, {4, 3, false}, {4, 2, true}, {4, 99, false}};
  const TraceSummary summary = summarise(data);
  CHECK(summary.critical_path == std::vector<std::uint64_t>{1, 3, 4});
  CHECK(summary.critical_path_seconds == Approx(0.007));
  double parts = 0;
  for (const auto& part : summary.critical_actors) parts += part.seconds;
  CHECK(parts == Approx(0.007));
  CHECK(summary.critical_actors[0].actor == data.tracks[3].actor);  // the copy
  CHECK(summary.critical_actors[0].seconds == Approx(0.004));
  CHECK(summary.lower_bound_seconds == Approx(0.007));
  CHECK(summary.ops == 4);
}

TEST_CASE("one lane's work bounds the time from below", "[trace]") {
  TraceData data = machine();
  kernel(data, 1, 1, 0, 4);
  kernel(data, 2, 1, 5, 9);
  CHECK(summarise(data).lower_bound_seconds == Approx(0.008));
}

TEST_CASE("an op that several cores share counts once", "[trace]") {
  TraceData data = machine();
  data.tracks.push_back({"socket0", "core 1", TrackKind::Socket});
  kernel(data, 1, 0, 0, 4);
  kernel(data, 1, 6, 1, 4);
  const TraceSummary summary = summarise(data);
  CHECK(summary.ops == 1);
  CHECK(summary.critical_path_seconds == Approx(0.004));
  CHECK(summary.actors[0].load == Approx(7.0 / 8));
}

TEST_CASE("a part of a recording holds what ran then", "[trace]") {
  TraceData data = machine();
  kernel(data, 1, 1, 0, 4);
  kernel(data, 2, 1, 5, 9);
  kernel(data, 3, 1, 9, 12);
  data.submissions = {{1, 5, 0, "a"}, {2, 5, 4 * kMs, "b"}, {3, 5, 8 * kMs, "c"}};
  const TraceData part = between(data, 3 * kMs, 8 * kMs);
  REQUIRE(part.spans.size() == 2);
  CHECK(summarise(part).wall_seconds == Approx(0.005));
  CHECK(summarise(part).compute_seconds == Approx(0.004));
  REQUIRE(part.submissions.size() == 1);
  CHECK(part.submissions[0].op == 2);
}

}  // namespace
}  // namespace weft
