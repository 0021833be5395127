#include "framework/trace.hpp"

#include <set>
#include <thread>

#include "support/catch.hpp"
#include "support/drained_fabric.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const auto kWrite = Kernel("write").cpu([](Cpu&, Out<int>) {});
const auto kRead = Kernel("read").cpu([](Cpu&, In<int>) {});

}  // namespace

TEST_CASE("a trace says who submitted what, what it waits for and where it ran",
          "[framework][trace]") {
  Tracer tracer;
  const auto track = tracer.add_track("gpu0", "compute 0", TrackKind::Gpu);
  DrainedFabric machine(1);
  machine.fabric->tracer = &tracer;
  auto x = machine.device(0).tensor<int>({100});
  machine.device(0).submit(kWrite, out(x));
  const Future read = machine.device(1).submit(kRead, in(x));
  std::int64_t time = tracer.now();
  std::vector<std::uint64_t> ran;
  for (Mailbox* mailbox :
       {static_cast<Mailbox*>(&machine.mailbox(0)), static_cast<Mailbox*>(&machine.link(0, 1)),
        static_cast<Mailbox*>(&machine.mailbox(1))}) {
    Op* op = machine.take_one(*mailbox);
    REQUIRE(op);
    ran.push_back(op->id);
    tracer.ran(track, *op, time, time + 5);
    time += 5;
    machine.run(op);
  }
  CHECK(read.is_settled());
  const TraceData data = tracer.collect();
  CHECK(data.dropped == 0);
  REQUIRE(data.spans.size() == 3);
  CHECK(data.spans[0].name == "write");
  CHECK(data.spans[1].name == "copy");
  CHECK(data.spans[1].kind == SpanKind::Copy);
  CHECK(data.spans[1].bytes == 400);
  CHECK(data.spans[2].kind == SpanKind::Kernel);
  CHECK(data.submissions.size() == 3);
  CHECK(data.tracks[data.submissions[0].track].kind == TrackKind::Submitter);
  REQUIRE(data.causes.size() == 2);
  CHECK(data.causes[0].op == ran[1]);
  CHECK(data.causes[0].producer == ran[0]);
  CHECK(data.causes[1].op == ran[2]);
  CHECK(data.causes[1].producer == ran[1]);
  tracer.clear();
  CHECK(tracer.collect().spans.empty());
  CHECK(tracer.collect().tracks.size() == data.tracks.size());
  machine.fabric->tracer = nullptr;
}

TEST_CASE("spans by the processor's clock lie on the recording's axis", "[framework][trace]") {
  Tracer tracer;
  const auto track = tracer.add_track("socket0", "core 0", TrackKind::Socket);
  DrainedFabric machine(0);
  machine.fabric->tracer = &tracer;
  auto x = machine.device(0).tensor<int>({1});
  machine.device(0).submit(kWrite, out(x));
  Op* op = machine.take_one(machine.mailbox(0));
  REQUIRE(op);
  const std::int64_t before = tracer.now();
  const std::uint64_t start = ticks();
  while (tracer.now() - before < 2'000'000) {
  }
  tracer.ran_ticks(track, *op, start, ticks(), true);
  const std::int64_t after = tracer.now();
  machine.run(op);
  const TraceData data = tracer.collect();
  REQUIRE(data.spans.size() == 1);
  CHECK(data.spans[0].failed);
  CHECK(data.spans[0].track == track);
  constexpr std::int64_t kSlack = 50'000;  // the thread may be interrupted between two clocks
  CHECK(data.spans[0].start_ns >= before - kSlack);
  CHECK(data.spans[0].end_ns <= after + kSlack);
  CHECK(data.spans[0].end_ns - data.spans[0].start_ns >= 2'000'000 - kSlack);
  REQUIRE(data.submissions.size() == 1);
  CHECK(data.submissions[0].at_ns <= before + kSlack);
  machine.fabric->tracer = nullptr;
}

TEST_CASE("a trace that is cleared begins anew and keeps records by the thousands in order",
          "[framework][trace]") {
  Tracer tracer;
  const auto track = tracer.add_track("socket0", "core 0", TrackKind::Socket);
  DrainedFabric machine(0);
  machine.fabric->tracer = &tracer;
  auto x = machine.device(0).tensor<int>({1});
  for (int round = 0; round < 2; ++round) {
    tracer.clear();
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 5000; ++i) {
      machine.device(0).submit(kWrite, out(x));
      Op* op = machine.take_one(machine.mailbox(0));
      REQUIRE(op);
      ids.push_back(op->id);
      tracer.ran(track, *op, 10 * i, 10 * i + 5);
      machine.run(op);
    }
    const TraceData data = tracer.collect();
    REQUIRE(data.spans.size() == ids.size());
    REQUIRE(data.submissions.size() == ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      REQUIRE(data.spans[i].op == ids[i]);
      REQUIRE(data.submissions[i].op == ids[i]);
    }
  }
  machine.fabric->tracer = nullptr;
}

TEST_CASE("a trace keeps to its limit and counts what it drops", "[framework][trace]") {
  Tracer tracer(3);
  DrainedFabric machine(0);
  machine.fabric->tracer = &tracer;
  auto x = machine.device(0).tensor<int>({1});
  for (int i = 0; i < 10; ++i) machine.device(0).submit(kWrite, out(x));
  machine.run_all();
  const TraceData data = tracer.collect();
  CHECK(data.submissions.size() == 3);
  CHECK(data.dropped == 7);
  machine.fabric->tracer = nullptr;
}

TEST_CASE("each thread records on its own, with op numbers of its own", "[framework][trace]") {
  Tracer tracer;
  DrainedFabric machine(0);
  machine.fabric->tracer = &tracer;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      auto x = machine.device(0).tensor<int>({1});
      for (int i = 0; i < 100; ++i) machine.device(0).submit(kWrite, out(x));
    });
  for (auto& thread : threads) thread.join();
  machine.run_all();
  const TraceData data = tracer.collect();
  CHECK(data.submissions.size() == 300);
  std::set<std::uint64_t> ids;
  for (const auto& submission : data.submissions) ids.insert(submission.op);
  CHECK(ids.size() == 300);
  CHECK(data.tracks.size() == 3);
  CHECK(data.causes.size() == 297);
  machine.fabric->tracer = nullptr;
}
