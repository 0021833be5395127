#include "framework/mailbox.hpp"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "framework/admission.hpp"
#include "framework/op_pool.hpp"
#include "support/catch.hpp"

using namespace weft;

namespace {

struct Owner final : Mailbox {
  Owner() : Mailbox(nullptr) {}
  void wake() override {
    wakes.fetch_add(1);
    wakes.notify_one();
  }
  std::atomic<int> wakes{0};
};

struct Plain {
  Op* op = make_op(nullptr, 0, 0, 0);
  ~Plain() { release(op); }
};

}  // namespace

TEST_CASE("a mailbox gives back everything, oldest first", "[framework][mailbox]") {
  Owner owner;
  Plain a, b, c;
  CHECK(owner.take_ready() == nullptr);
  for (Op* op : {a.op, b.op, c.op}) owner.push(op);
  CHECK_FALSE(owner.is_empty());
  Op* op = owner.take_ready();
  CHECK(op == a.op);
  CHECK(op->next == b.op);
  CHECK(op->next->next == c.op);
  CHECK(op->next->next->next == nullptr);
  CHECK(owner.is_empty());
  CHECK(owner.wakes == 0);  // it never parked
}

TEST_CASE("what was submitted ready is kept apart from what became ready", "[framework][mailbox]") {
  Owner owner;
  Plain a, b, c;
  owner.push_submitted(a.op);
  owner.push(b.op);
  owner.push_submitted(c.op);
  CHECK(owner.take_ready() == b.op);
  CHECK(b.op->next == nullptr);
  CHECK_FALSE(owner.is_empty());
  CHECK_FALSE(owner.prepare_to_park());
  CHECK(owner.take_submitted() == a.op);
  CHECK(a.op->next == c.op);
  CHECK(owner.is_empty());
  REQUIRE(owner.prepare_to_park());
  owner.push_submitted(a.op);
  CHECK(owner.wakes == 1);
  owner.take_submitted();
}

TEST_CASE("only the first push after a park wakes the owner", "[framework][mailbox]") {
  Owner owner;
  Plain a, b;
  REQUIRE(owner.prepare_to_park());
  CHECK(owner.is_parked());
  owner.push(a.op);
  owner.push(b.op);
  CHECK(owner.wakes == 1);
  CHECK_FALSE(owner.is_parked());
  CHECK_FALSE(owner.prepare_to_park());  // there is something to do
  CHECK_FALSE(owner.is_parked());
  owner.take_ready();
  owner.nudge();
  CHECK(owner.wakes == 1);
  REQUIRE(owner.prepare_to_park());
  owner.nudge();
  CHECK(owner.wakes == 2);
}

TEST_CASE("no push is lost between a look and a park", "[framework][mailbox]") {
  Owner owner;
  constexpr int kOps = 20'000, kThreads = 3;
  std::vector<Plain> ops(kOps * kThreads);
  std::atomic<int> taken{0};
  std::thread consumer([&] {
    int seen = 0;
    while (taken.load() < kOps * kThreads) {
      int now = 0;
      for (Op* op = owner.take_ready(); op; op = op->next) ++now;
      for (Op* op = owner.take_submitted(); op; op = op->next) ++now;
      taken.fetch_add(now);
      if (now) continue;
      if (taken.load() == kOps * kThreads) break;
      if (!owner.prepare_to_park()) continue;
      owner.wakes.wait(seen);  // hangs if a wake was lost
      seen = owner.wakes.load();
    }
  });
  std::vector<std::thread> producers;
  for (int t = 0; t < kThreads; ++t)
    producers.emplace_back([&, t] {
      for (int i = 0; i < kOps; ++i) {
        Op* op = ops[static_cast<std::size_t>(t * kOps + i)].op;
        if (i % 2)
          owner.push(op);
        else
          owner.push_submitted(op);
      }
    });
  for (auto& producer : producers) producer.join();
  consumer.join();
  CHECK(taken == kOps * kThreads);
}

TEST_CASE("admission counts what is in and has room below its limit", "[framework][admission]") {
  Admission admission(3);
  for (int i = 0; i < 3; ++i) {
    CHECK(admission.has_room());
    admission.take_in();
  }
  CHECK_FALSE(admission.has_room());
  CHECK(admission.in_flight() == 3);
  admission.let_out();
  CHECK(admission.has_room());
  CHECK(admission.in_flight() == 2);
  CHECK(admission.settled() == 1);
  CHECK(admission.limit() == 3);
}

TEST_CASE("admission adds up over threads and is never negative", "[framework][admission]") {
  Admission admission(1 << 20);
  std::atomic<bool> over{false};
  std::atomic<int> negative{0};
  std::thread watcher([&] {
    while (!over) negative += admission.in_flight() < 0;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) admission.take_in(), admission.let_out();
    });
  for (auto& thread : threads) thread.join();
  over = true;
  watcher.join();
  CHECK(negative == 0);
  CHECK(admission.in_flight() == 0);
  CHECK(admission.settled() == 60'000);
}

TEST_CASE("op blocks are counted over threads and recycled", "[framework][op_pool]") {
  const std::int64_t before = op_pool::live();
  std::vector<std::pair<void*, std::uint8_t>> blocks;
  for (std::size_t bytes : {1u, 64u, 65u, 200u, 1000u, 1024u, 1025u, 100'000u})
    for (int i = 0; i < 300; ++i) {
      std::uint8_t size_class = 0;
      void* block = op_pool::allocate(bytes, size_class);
      REQUIRE(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
      std::memset(block, 0x5a, bytes);
      blocks.emplace_back(block, size_class);
    }
  CHECK(op_pool::live() == before + 2400);
  std::thread other([&] {
    for (auto [block, size_class] : blocks) {
      if (size_class > 0) static_cast<Op*>(block)->references = 0;
      op_pool::free(block, size_class);
    }
  });
  other.join();
  CHECK(op_pool::live() == before);

  std::uint8_t size_class = 0;
  void* first = op_pool::allocate(100, size_class);
  op_pool::free(first, size_class);
  void* again = op_pool::allocate(100, size_class);
  CHECK(first == again);
  op_pool::free(again, size_class);
}

TEST_CASE("a window that was full says how much room it has again", "[framework][mailbox]") {
  Admission admission(8);
  for (int i = 0; i < 8; ++i) {
    REQUIRE(admission.has_room());
    admission.take_in();
  }
  CHECK_FALSE(admission.has_room());
  admission.let_out();
  CHECK(admission.has_room());
  CHECK_FALSE(admission.has_room(1));
  admission.let_out();
  CHECK(admission.has_room(1));
  CHECK(admission.in_flight() == 6);
}
