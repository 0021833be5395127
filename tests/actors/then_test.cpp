#include <caf/scheduler/test_coordinator.hpp>

#include "actors/then.hpp"
#include "support/catch.hpp"
#include "support/leaks.hpp"
#include "support/thrown.hpp"
#include "tests/actors/conformance.hpp"

using namespace weft;
using namespace weft::test;

namespace {

RuntimeOptions on(caf::actor_system& system) {
  auto options = EngineCase{"", "1 socket x 1 core, 2 gpus", true, 2}.options();
  options.system = &system;
  return options;
}

const auto kSet =
    Kernel("set").cpu([](Cpu&, int value, Out<int> x) { std::fill(x.begin(), x.end(), value); });
const auto kThrow =
    Kernel("thrower").cpu([](Cpu&, Out<int>) { throw std::runtime_error("no luck"); });

// An actor that asks for `future` and notes what it is told.
struct Told {
  int calls = 0;
  bool failed = false;
  std::string root;
};

void ask(caf::actor_system& system, const Runtime& runtime, const Future& future, Told& told) {
  system.spawn([&runtime, future, &told](caf::event_based_actor* self) {
    then(self, runtime, future, [&told](const Future& settled) {
      ++told.calls;
      told.failed = settled.has_failed();
      if (const FailureRef failure = settled.failure()) told.root = failure->root_message();
    });
  });
}

}  // namespace

TEST_CASE("a future arrives as a message once it has settled", "[actors][then]") {
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("testing"));
  caf::actor_system system(config);
  auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  Promise promise("gate"), refused("refused");
  Told told, failed, late;
  {
    Runtime runtime(on(system));
    ask(system, runtime, promise.future(), told);
    ask(system, runtime, refused.future(), failed);
    scheduler.run();
    CHECK(told.calls == 0);
    promise.fulfil();
    CHECK(told.calls == 0);  // not in the thread that settles it
    scheduler.run();
    CHECK(told.calls == 1);
    CHECK_FALSE(told.failed);
    refused.fail("no");
    scheduler.run();
    CHECK(failed.calls == 1);
    CHECK(failed.failed);
    CHECK(failed.root == "no");
    ask(system, runtime, Future(), late);  // settled already
    scheduler.run();
    CHECK(late.calls == 1);
  }
  scheduler.run();
}

TEST_CASE("what has settled is told though the runtime ends before its actor is run",
          "[actors][then]") {
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("testing"));
  caf::actor_system system(config);
  auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  Told told, failed;
  {
    Runtime runtime(on(system));
    auto x = runtime.tensor<int>({3}), y = runtime.tensor<int>({3});
    Promise gate("gate");
    const Future set = runtime.gpu(0).submit(kSet, 1, out(x), after(gate.future()));
    const Future broken = runtime.gpu(1).submit(kThrow, out(y), after(gate.future()));
    ask(system, runtime, set, told);
    ask(system, runtime, broken, failed);
    scheduler.run();  // both are asked for, neither has settled
    CHECK(told.calls == 0);
    gate.fulfil();
  }  // all in flight settles here, and nobody has run the actor that tells
  scheduler.run();
  CHECK(told.calls == 1);
  CHECK(failed.calls == 1);
  CHECK(failed.root == "no luck");
}

TEST_CASE("an actor of a real system submits from then to then", "[actors][then]") {
  const Leaks leaks;
  {
    caf::actor_system_config config;
    caf::actor_system system(config);
    Runtime runtime(on(system));
    Promise finished("finished");
    const Future all_done = finished.future();
    auto x = runtime.tensor<int>({10});
    int rounds = 0;
    std::function<void(caf::event_based_actor*)> step = [&](caf::event_based_actor* self) {
      if (++rounds > 200) {
        finished.fulfil();
        return;
      }
      const Future set =
          runtime.gpu(static_cast<std::size_t>(rounds % 2)).submit(kSet, rounds, out(x));
      then(self, runtime, set, [&step, self](const Future&) { step(self); });
    };
    system.spawn([&step](caf::event_based_actor* self) { step(self); });
    all_done.wait();
    CHECK(x.to_host()[0] == 200);
    runtime.wait_idle();
  }
  leaks.check();
}
