#include "framework/op.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "framework/kernel_code.hpp"
#include "framework/mailbox.hpp"
#include "framework/tagged.hpp"
#include "support/catch.hpp"
#include "support/leaks.hpp"

using namespace weft;

namespace {

struct Owner final : Mailbox {
  Owner() : Mailbox(nullptr) {}
  void wake() override { ++wakes; }
  int wakes = 0;
};

struct Kept final : ReadySink {
  void ready(Op* op) override { ops.push_back(op); }
  std::vector<Op*> ops;
};

const KernelCode& plain() {
  static const KernelCode& code = *[] {
    auto* made = new KernelCode;
    made->name = "plain";
    return made;
  }();
  return code;
}

// An op with one reference more than its runner's, which the test holds.
Op* op_with(std::size_t producers, Mailbox* owner, Domain domain = Domain::Host,
            std::size_t waits = 0) {
  Op* op = make_op(&plain(), 0, waits, 0);
  op->owner = owner;
  op->domain = domain;
  op->pending.store(static_cast<std::uint32_t>(producers) + 1);
  acquire(op);
  publish(op);
  return op;
}

Failure* some_failure(const char* message = "broken") {
  return Failure::make(FailureKind::Injected, "first", "gpu0", message);
}

}  // namespace

TEST_CASE("an op waits until its dependency settles", "[framework][op]") {
  const test::Leaks leaks;
  {
    Owner owner;
    Kept kept;
    Op* a = op_with(0, &owner);
    Op* b = op_with(1, &owner);
    REQUIRE(add_follower(a, Stage::Done, b, false));
    satisfy(b, kept);
    CHECK(kept.ops.empty());
    satisfy(a, kept);
    REQUIRE(kept.ops == std::vector<Op*>{a});
    CHECK_FALSE(a->is_settled());
    settle(a, nullptr, kept);
    CHECK(a->is_settled());
    CHECK_FALSE(a->has_failed());
    REQUIRE(kept.ops == std::vector<Op*>{a, b});
    CHECK_FALSE(add_follower(a, Stage::Done, b, false));  // nothing to wait for any more
    settle(b, nullptr, kept);
    release(a);
    release(b);
  }
  leaks.check();
}

TEST_CASE("followers become ready in the order in which they were submitted", "[framework][op]") {
  Owner owner;
  Kept kept;
  Op* a = op_with(0, &owner);
  std::vector<Op*> followers;
  for (int i = 0; i < 10; ++i) {
    followers.push_back(op_with(1, &owner));
    REQUIRE(add_follower(a, Stage::Done, followers.back(), false));
    satisfy(followers.back(), kept);
  }
  satisfy(a, kept);
  kept.ops.clear();
  settle(a, nullptr, kept);
  CHECK(kept.ops == followers);
  for (Op* op : followers) settle(op, nullptr, kept), release(op);
  release(a);
}

TEST_CASE(
    "followers that come while their producer ends become ready once or are told that it is past",
    "[framework][op]") {
  constexpr int kThreads = 3, kEach = 20, kRounds = 200;
  const test::Leaks leaks;
  for (int round = 0; round < kRounds; ++round) {
    Owner owner;
    Kept kept;
    Op* a = op_with(0, &owner);
    satisfy(a, kept);
    kept.ops.clear();
    std::vector<std::vector<Op*>> waiting(kThreads), late(kThreads);
    std::atomic<int> begun{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        std::vector<Op*> mine;
        // The one pending count of each is the producer's.
        for (int i = 0; i < kEach; ++i) mine.push_back(op_with(0, &owner));
        for (Op* op : mine) {
          (add_follower(a, Stage::Done, op, false) ? waiting : late)[t].push_back(op);
          begun.fetch_add(1);
        }
      });
    while (begun.load() < round % (kThreads * kEach)) std::this_thread::yield();
    settle(a, nullptr, kept);
    for (std::thread& thread : threads) thread.join();
    std::size_t all = 0;
    for (int t = 0; t < kThreads; ++t) {
      all += waiting[t].size();
      // Those of one thread in its order.
      auto at = kept.ops.begin();
      for (Op* op : waiting[t]) {
        at = std::find(at, kept.ops.end(), op);
        REQUIRE(at != kept.ops.end());
      }
      for (Op* op : late[t]) satisfy(op, kept);
    }
    REQUIRE(kept.ops.size() == std::size_t{kThreads * kEach});
    REQUIRE(all <= kept.ops.size());
    for (Op* op : kept.ops) settle(op, nullptr, send_to_owner()), release(op);
    release(a);
  }
  leaks.check();
}

TEST_CASE("an op on a device has followers of both stages beyond its slots", "[framework][op]") {
  const test::Leaks leaks;
  {
    Owner owner;
    Kept kept;
    Op* a = op_with(0, &owner, Domain::Emulated);
    satisfy(a, kept);
    kept.ops.clear();
    std::vector<Op*> on_device, on_host;
    for (int i = 0; i < 15; ++i) {
      on_device.push_back(op_with(0, &owner, Domain::Emulated));
      REQUIRE(add_follower(a, Stage::Issued, on_device.back(), false));
      on_host.push_back(op_with(0, &owner));
      REQUIRE(add_follower(a, Stage::Done, on_host.back(), false));
    }
    mark_issued(a, kept);
    CHECK(kept.ops == on_device);
    kept.ops.clear();
    settle(a, nullptr, kept);
    CHECK(kept.ops == on_host);
    for (Op* op : on_device) settle(op, nullptr, kept), release(op);
    for (Op* op : on_host) settle(op, nullptr, kept), release(op);
    release(a);
  }
  leaks.check();
}

TEST_CASE("a device-side follower starts when its producer is issued", "[framework][op]") {
  Owner owner;
  Kept kept;
  Op* a = op_with(0, &owner, Domain::Emulated);
  Op* on_device = op_with(1, &owner, Domain::Emulated);
  Op* on_host = op_with(1, &owner);
  REQUIRE(add_follower(a, Stage::Issued, on_device, false));
  REQUIRE(add_follower(a, Stage::Done, on_host, false));
  for (Op* op : {on_device, on_host, a}) satisfy(op, kept);
  kept.ops.clear();
  mark_issued(a, kept);
  CHECK(a->is_issued());
  CHECK_FALSE(a->is_settled());
  CHECK(kept.ops == std::vector<Op*>{on_device});
  settle(a, nullptr, kept);
  CHECK(kept.ops == std::vector<Op*>{on_device, on_host});
  for (Op* op : {on_device, on_host}) settle(op, nullptr, kept), release(op);
  release(a);
}

TEST_CASE("an op that settles without having been issued lets device-side followers go",
          "[framework][op]") {
  Owner owner;
  Kept kept;
  Op* a = op_with(0, &owner, Domain::Emulated);
  Op* b = op_with(1, &owner, Domain::Emulated);
  REQUIRE(add_follower(a, Stage::Issued, b, false));
  satisfy(b, kept);
  satisfy(a, kept);
  settle(a, some_failure(), kept);
  CHECK(b->is_settled());  // it failed with it, no owner ever saw it
  REQUIRE(b->has_failed());
  CHECK(b->failure.load()->root_message() == "broken");
  CHECK(kept.ops == std::vector<Op*>{a});
  release(a);
  release(b);
}

TEST_CASE("a failure reaches every dependent with its cause, an ordering edge stops it",
          "[framework][op]") {
  const test::Leaks leaks;
  {
    Owner owner;
    Kept kept;
    Op* a = op_with(0, &owner);
    Op* needs = op_with(1, &owner);
    Op* follows = op_with(1, &owner);
    Op* last = op_with(1, &owner);
    REQUIRE(add_follower(a, Stage::Done, needs, false));
    REQUIRE(add_follower(a, Stage::Done, follows, true));
    REQUIRE(add_follower(needs, Stage::Done, last, false));
    for (Op* op : {needs, follows, last, a}) satisfy(op, kept);
    kept.ops.clear();
    settle(a, some_failure(), kept);
    CHECK(needs->has_failed());
    CHECK(last->is_settled());
    REQUIRE(last->has_failed());
    CHECK(last->failure.load()->chain() == std::vector<std::string>{"first", "plain", "plain"});
    CHECK_FALSE(follows->is_settled());
    CHECK(kept.ops == std::vector<Op*>{follows});
    settle(follows, nullptr, kept);
    for (Op* op : {a, needs, follows, last}) release(op);
  }
  leaks.check();
}

TEST_CASE("of two failed producers one is the cause", "[framework][op]") {
  const test::Leaks leaks;
  {
    Owner owner;
    Kept kept;
    Op* a = op_with(0, &owner);
    Op* b = op_with(0, &owner);
    Op* c = op_with(2, &owner);
    REQUIRE(add_follower(a, Stage::Done, c, false));
    REQUIRE(add_follower(b, Stage::Done, c, false));
    for (Op* op : {c, a, b}) satisfy(op, kept);
    settle(a, some_failure("one"), kept);
    CHECK_FALSE(c->is_settled());
    settle(b, some_failure("two"), kept);
    REQUIRE(c->has_failed());
    CHECK(c->failure.load()->root_message() == "one");
    for (Op* op : {a, b, c}) release(op);
  }
  leaks.check();
}

TEST_CASE("an op that fails before launch settles behind what is issued and not done",
          "[framework][op]") {
  // `write` fails with `input`, but `reader`, which it must not overtake, still runs on its lane.
  Owner owner;
  Kept kept;
  Op* input = op_with(0, &owner, Domain::Emulated);
  Op* reader = op_with(0, &owner, Domain::Emulated);
  Op* write = op_with(2, &owner, Domain::Emulated, 2);
  acquire(input);
  acquire(reader);
  write->waits()[0] = tag(input, false);
  write->waits()[1] = tag(reader, true);
  REQUIRE(add_follower(input, Stage::Issued, write, false));
  REQUIRE(add_follower(reader, Stage::Issued, write, true));
  for (Op* op : {write, input, reader}) satisfy(op, kept);
  mark_issued(reader, kept);
  settle(input, some_failure(), kept);
  CHECK_FALSE(write->is_settled());
  settle(reader, nullptr, kept);
  CHECK(write->is_settled());
  CHECK(write->has_failed());
  for (Op* op : {input, reader, write}) release(op);
}

TEST_CASE("inline ops run in the thread that settles their last producer", "[framework][op]") {
  static int runs = 0;
  static const KernelCode& code = *[] {
    auto* made = new KernelCode;
    made->name = "inline";
    made->inline_run = [](Op&) { ++runs; };
    return made;
  }();
  const test::Leaks leaks;
  runs = 0;
  {
    Owner owner;
    Kept kept;
    Op* a = op_with(0, &owner);
    satisfy(a, kept);
    // A chain as long as a program: worked off in a loop, not by recursion.
    Op* last = a;
    for (int i = 0; i < 200'000; ++i) {
      Op* next = make_op(&code, 0, 0, 0);
      acquire(next);
      next->pending.store(2);
      REQUIRE(add_follower(last, Stage::Done, next, false));
      satisfy(next, kept);
      if (last != a) release(last);
      last = next;
    }
    CHECK(runs == 0);
    settle(a, nullptr, kept);
    CHECK(runs == 200'000);
    CHECK(last->is_settled());
    release(last);
    release(a);
  }
  leaks.check();
}

TEST_CASE("waiting for all of some ops, settled ones among them", "[framework][op]") {
  Owner owner;
  Kept kept;
  Op* done = op_with(0, &owner);
  Op* failing = op_with(0, &owner);
  satisfy(done, kept);
  satisfy(failing, kept);
  settle(done, nullptr, kept);
  Op* behind = make_op(&plain(), 0, 0, 0);
  acquire(behind);
  publish(behind);
  Op* const producers[] = {done, failing};
  wait_for_all(behind, producers);
  CHECK_FALSE(behind->is_settled());
  settle(failing, some_failure(), kept);
  CHECK(behind->is_settled());
  CHECK_FALSE(behind->has_failed());
  for (Op* op : {done, failing, behind}) release(op);
}

TEST_CASE("a marked replica pointer keeps its access, a marked producer its order",
          "[framework][op]") {
  alignas(8) static char place[8];
  auto* replica = reinterpret_cast<Replica*>(place);
  for (Access access : {Access::In, Access::Out, Access::InOut, Access::Reduce}) {
    const ArgSlot slot(replica, access);
    CHECK(slot.replica() == replica);
    CHECK(slot.access() == access);
  }
  auto* op = reinterpret_cast<Op*>(place);
  CHECK(untagged(tag(op, true)) == op);
  CHECK(is_order_only(tag(op, true)));
  CHECK_FALSE(is_order_only(tag(op, false)));
}
