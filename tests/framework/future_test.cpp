#include "framework/future.hpp"

#include <atomic>
#include <thread>

#include "framework/fabric.hpp"
#include "support/catch.hpp"
#include "support/leaks.hpp"
#include "support/thrown.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("an empty future is done", "[framework][future]") {
  const Future none;
  CHECK(none.is_settled());
  CHECK(none.is_issued());
  CHECK_FALSE(none.has_failed());
  CHECK_FALSE(none.failure());
  none.wait();
  int calls = 0;
  none.on_settled([&] { ++calls; });
  CHECK(calls == 1);
}

TEST_CASE("a promise is fulfilled, refused or dropped, once", "[framework][future]") {
  const Leaks leaks;
  {
    Promise a("a");
    const Future done = a.future();
    CHECK_FALSE(done.is_settled());
    CHECK_FALSE(done.wait_for(std::chrono::microseconds(1)));
    a.fulfil();
    CHECK(done.is_settled());
    CHECK_FALSE(done.has_failed());
    CHECK(done.wait_for(std::chrono::nanoseconds(0)));
    CHECK_THROWS_AS(a.fulfil(), UsageError);
    CHECK_THROWS_AS(a.fail("late"), UsageError);
    CHECK_THROWS_AS(a.future(), UsageError);

    Promise b("b");
    const Future refused = b.future();
    b.fail("no");
    CHECK(thrown<OpError>([&] { refused.wait(); }) == "b on the program: cancelled: no");
    CHECK(refused.failure()->kind() == FailureKind::Cancelled);

    Future dropped;
    {
      Promise c("c");
      dropped = c.future();
      Promise moved = std::move(c);
      CHECK_FALSE(dropped.is_settled());
    }
    CHECK(has(thrown<OpError>([&] { dropped.wait(); }), "its promise was dropped"));
  }
  leaks.check();
}

TEST_CASE("when_all waits for all and fails with the first that fails", "[framework][future]") {
  const Leaks leaks;
  {
    CHECK(when_all({}).is_settled());
    Promise a("a"), b("b"), c("c");
    const Future all = when_all({a.future(), b.future(), Future()});
    const Future with_failure = when_all({b.future(), c.future()});
    a.fulfil();
    CHECK_FALSE(all.is_settled());
    c.fail("broken");
    CHECK_FALSE(with_failure.is_settled());
    b.fulfil();
    CHECK(all.is_settled());
    CHECK_FALSE(all.has_failed());
    REQUIRE(with_failure.has_failed());
    CHECK(with_failure.failure()->chain() == std::vector<std::string>{"c", "when_all"});
    CHECK(when_all({with_failure}).has_failed());  // of settled ones too
  }
  leaks.check();
}

TEST_CASE("when_all takes very many futures", "[framework][future]") {
  const Leaks leaks;
  {
    std::vector<Promise> promises;
    std::vector<Future> futures;
    for (int i = 0; i < 70'000; ++i) {
      promises.emplace_back("p");
      futures.push_back(promises.back().future());
    }
    const Future all = when_all(std::span<const Future>(futures));
    for (std::size_t i = 1; i < promises.size(); ++i) promises[i].fulfil();
    CHECK_FALSE(all.is_settled());
    promises[0].fulfil();
    CHECK(all.is_settled());
  }
  leaks.check();
}

TEST_CASE("callbacks run once, in the thread that settles", "[framework][future]") {
  const Leaks leaks;
  {
    Promise gate("gate");
    std::thread::id ran_in;
    std::atomic<int> calls{0};
    gate.future().on_settled([&] {
      ran_in = std::this_thread::get_id();
      ++calls;
    });
    std::thread settler([gate = std::move(gate)]() mutable { gate.fulfil(); });
    const auto settler_id = settler.get_id();
    settler.join();
    CHECK(calls == 1);
    CHECK(ran_in == settler_id);
  }
  leaks.check();
}

TEST_CASE("waits are woken by another thread, however they race", "[framework][future]") {
  const Leaks leaks;
  for (int round = 0; round < 2000; ++round) {
    Promise gate("gate");
    const Future future = gate.future();
    std::atomic<int> calls{0};
    std::thread settler([gate = std::move(gate)]() mutable { gate.fulfil(); });
    future.on_settled([&] { ++calls; });
    future.wait();
    settler.join();
    REQUIRE(calls == 1);
  }
  leaks.check();
}

TEST_CASE("a promise being settled elsewhere is seen, one settled here is not",
          "[framework][future]") {
  Promise gate("gate");
  bool inside = true;
  gate.future().on_settled([&] { inside = promises_are_settling(); });
  gate.fulfil();
  CHECK_FALSE(inside);  // its own thread may end a runtime in a callback
  CHECK_FALSE(promises_are_settling());
}

TEST_CASE("waiting is refused on threads that must not", "[framework][future]") {
  Promise gate("gate");
  const Future future = gate.future();
  thread_must_not_wait() = true;
  CHECK(has(thrown<UsageError>([&] { future.wait(); }), "wait() on an actor's thread"));
  gate.fulfil();
  CHECK_NOTHROW(future.wait());  // nothing to wait for
  thread_must_not_wait() = false;
}

namespace {

Task add_later(Future first, Future second, int& steps) {
  ++steps;
  co_await first;
  ++steps;
  co_await second;
  ++steps;
}

Task outer(Future first, std::string& said) {
  int steps = 0;
  try {
    co_await add_later(first, {}, steps);
  } catch (const OpError& error) {
    said = error.what();
    throw std::runtime_error("outer gave up");
  }
}

Task immediate() {
  co_return;
}

}  // namespace

TEST_CASE("a coroutine goes on where its futures settle", "[framework][future]") {
  const Leaks leaks;
  {
    Promise a("a"), b("b");
    int steps = 0;
    const Task task = add_later(a.future(), b.future(), steps);
    CHECK(steps == 1);
    b.fulfil();
    CHECK(steps == 1);
    a.fulfil();
    CHECK(steps == 3);
    CHECK(task.future().is_settled());
    immediate().wait();
  }
  leaks.check();
}

TEST_CASE("a failure is thrown into the coroutine, and out of it into its future",
          "[framework][future]") {
  const Leaks leaks;
  {
    Promise a("a");
    std::string said;
    const Task task = outer(a.future(), said);
    a.fail("no data");
    CHECK(has(said, "no data"));
    CHECK(has(thrown<OpError>([&] { task.wait(); }), "outer gave up"));
  }
  leaks.check();
}

TEST_CASE("a coroutine of many steps does not recurse", "[framework][future]") {
  const Leaks leaks;
  {
    std::vector<Promise> promises;
    std::vector<Future> futures;
    for (int i = 0; i < 100'000; ++i) {
      promises.emplace_back("p");
      futures.push_back(promises.back().future());
    }
    auto walk = [](const std::vector<Future>& all) -> Task {
      for (const Future& future : all) co_await future;
    };
    const Task task = walk(futures);
    for (auto& promise : promises) promise.fulfil();
    CHECK(task.future().is_settled());
  }
  leaks.check();
}
