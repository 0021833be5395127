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
