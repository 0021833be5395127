#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <sstream>
#include <thread>

#include "support/catch.hpp"
#include "support/leaks.hpp"
#include "support/thrown.hpp"
#include "tests/actors/conformance.hpp"
#include "tests/actors/graph_runs.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const auto kSet =
    Kernel("set").cpu([](Cpu&, int value, Out<int> x) { std::fill(x.begin(), x.end(), value); });
const auto kAddTo = Kernel("add_to").cpu([](Cpu&, int value, InOut<int> x) {
  for (int& i : x) i += value;
});

RuntimeOptions two_gpus() {
  auto options = EngineCase{"", "2 sockets x 2 cores, 2 gpus", true, 2}.options();
  options.emulated->delay = [](const LaneOp&) { return std::chrono::microseconds(20); };
  return options;
}

}  // namespace

TEST_CASE("a runtime ends with work in flight, in whatever state", "[actors][end]") {
  const Leaks leaks;
  for (int round = 0; round < 40; ++round) {
    std::vector<HostArray<int>> hosts;
    std::vector<Future> futures;
    std::thread settler;
    {
      Runtime rt(two_gpus());
      Promise gate("gate");
      auto x = rt.tensor<int>({100}), y = rt.tensor<int>({100}), big = rt.tensor<int>({200'000});
      // Pending behind a promise, parked, issued, running, copied in chunks, handles dropped.
      futures.push_back(rt.gpu(0).submit(kSet, 1, out(x), after(gate.future())));
      for (int i = 0; i < 10; ++i)
        rt.gpu(static_cast<std::size_t>(i % 2)).submit(kAddTo, 1, inout(x));
      rt.socket(0).submit(kSet, 2, out(y));
      rt.gpu(0).submit(kAddTo, 1, inout(y));
      rt.gpu(0).submit(kSet, 3, out(big));
      rt.gpu(1).submit(kAddTo, 1, inout(big));
      hosts = {x.to_host(), y.to_host(), big.to_host()};
      // Submitted by a callback while the runtime is ending.
      hosts[1].future().on_settled([&rt, y] {
        rt.gpu(1).submit(kAddTo, 1, inout(y)).on_settled([&rt, y] {
          rt.socket(1).submit(kAddTo, 1, inout(y));
        });
      });
      if (round % 2) {
        settler = std::thread([gate = std::move(gate)]() mutable { gate.fulfil(); });
      } else if (round % 4 == 0) {
        settler = std::thread([gate = std::move(gate)]() mutable { gate.fail("not today"); });
      }  // else it is dropped before the runtime goes
    }
    if (settler.joinable()) settler.join();
    CHECK(futures[0].is_settled());
    if (round % 2)
      CHECK(hosts[0][5] == 11);
    else
      CHECK(has(thrown<OpError>([&] { static_cast<void>(hosts[0].span()); }), "gate"));
    CHECK(hosts[1][5] == 3);
    CHECK(hosts[2][199'999] == 4);
  }
  leaks.check();
}

TEST_CASE("tensors and futures outlive their runtime", "[actors][end]") {
  const Leaks leaks;
  {
    Tensor<int> x;
    HostArray<int> host;
    Future future;
    std::optional<Device> device;
    {
      Runtime rt(two_gpus());
      device = rt.gpu(0);
      x = rt.tensor<int>({10});
      future = device->submit(kSet, 4, out(x));
      host = x.to_host();
    }
    CHECK(future.is_settled());
    CHECK(host.to_vector() == std::vector<int>(10, 4));
    CHECK(has(thrown<UsageError>([&] { device->submit(kSet, 5, out(x)); }), "runtime has ended"));
    CHECK(has(thrown<UsageError>([&] { static_cast<void>(x.to_host()); }), "runtime has ended"));
  }
  leaks.check();
}

TEST_CASE("a lost device fails what is its own, the rest goes on", "[actors][end]") {
  const Leaks leaks;
  {
    Runtime rt(two_gpus());
    auto x = rt.from_host(std::vector<int>(10, 1), {10}),
         y = rt.from_host(std::vector<int>(10, 1), {10});
    rt.gpu(0).submit(kAddTo, 1, inout(x)).wait();
    rt.lose(rt.gpu(0));
    const Future lost = rt.gpu(0).submit(kAddTo, 1, inout(x));
    const Future dependent = rt.gpu(1).submit(kAddTo, 1, inout(x));
    rt.gpu(1).submit(kAddTo, 1, inout(y));
    CHECK(has(thrown<OpError>([&] { lost.wait(); }), "add_to on gpu0: device lost"));
    CHECK_FALSE(thrown<OpError>([&] { dependent.wait(); }).empty());
    CHECK(dependent.failure()->kind() == FailureKind::DeviceLost);
    CHECK(y.to_host()[0] == 2);
    rt.gpu(1).submit(kSet, 9, out(x));
    CHECK(x.to_host()[0] == 9);
    CHECK(has(thrown<DeviceError>([&] { rt.lose(rt.socket(0)); }),
              "only emulated and simulated GPUs"));
    rt.wait_idle();
  }
  leaks.check();
}

TEST_CASE("waiting on an actor's thread is refused", "[actors][end]") {
  Runtime rt(two_gpus());
  Promise never("never");
  const Future future = never.future();
  for (const Device& device : rt.devices()) {
    const Future op = device.submit(Kernel("waiter").cpu([&](Cpu&) {
      const std::string said = thrown<UsageError>([&] { future.wait(); });
      if (!has(said, "wait() on an actor's thread")) throw std::runtime_error("waited: " + said);
      if (thrown<UsageError>([&] { rt.wait_idle(); }).empty()) throw std::runtime_error("idle");
    }));
    CHECK_NOTHROW(op.wait());
  }
}

TEST_CASE("the watchdog says who waits for whom, once per silence", "[actors][end]") {
  std::ostringstream said;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said)));
  {
    auto options = two_gpus();
    options.watchdog = std::chrono::milliseconds(40);
    Runtime rt(options);
    Promise never("minibatch 7");
    auto x = rt.tensor<int>({10});
    const Future future = rt.gpu(0).submit(kSet, 1, out(x), after(never.future()));
    const Future second = rt.gpu(0).submit(kAddTo, 1, inout(x));
    CHECK(has(rt.wait_for_graph(), "promise \"minibatch 7\""));
    CHECK_FALSE(future.wait_for(std::chrono::milliseconds(400)));  // the silence it watches
    never.fulfil();
    second.wait();
    CHECK(rt.wait_for_graph() == "");
  }
  spdlog::set_default_logger(before);
  const std::string text = said.str();
  INFO(text);
  CHECK(has(text, "nothing has settled for 0.0 s, 2 ops are pending"));
  CHECK(has(text, "is not settled by the program"));
  CHECK(has(text, "set #"));
  CHECK(has(text, "on gpu0 waits for promise \"minibatch 7\""));
  CHECK(text.find("nothing has settled") == text.rfind("nothing has settled"));
}

TEST_CASE("the watchdog looks at ops while they come and go", "[actors][end]") {
  auto options = two_gpus();
  options.watchdog = std::chrono::seconds(100);
  Runtime rt(options);
  std::atomic<bool> is_over{false};
  std::thread looker([&] {
    while (!is_over) static_cast<void>(rt.wait_for_graph());
  });
  {
    Runtime other(two_gpus());
    auto x = rt.tensor<int>({10}), y = other.tensor<int>({10});
    for (int i = 0; i < 2000; ++i) {
      rt.gpu(static_cast<std::size_t>(i % 2)).submit(kSet, i, out(x));
      other.gpu(0).submit(kSet, i, out(y));
      Promise promise("promise " + std::to_string(i));
      rt.socket(0).submit(kAddTo, 1, inout(x), after(promise.future()));
      promise.fulfil();
    }
    CHECK(x.to_host()[3] == 2000);
  }
  is_over = true;
  looker.join();
}

TEST_CASE("a runtime may end while its watchdog looks", "[actors][end]") {
  for (int round = 0; round < 100; ++round) {
    auto options = two_gpus();
    options.watchdog = std::chrono::microseconds(200);
    Runtime rt(options);
    auto x = rt.tensor<int>({10});
    rt.gpu(0).submit(kSet, 1, out(x));
  }
}

TEST_CASE("a million ops run in constant memory", "[actors][end]") {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kOps = 50'000;
#else
  constexpr int kOps = 1'000'000;
#endif
  for (const bool gpu : {false, true}) {
    auto options = EngineCase{"", "1 socket x 1 core, 2 gpus", true, 2}.options();
    options.admission = 1024;
    Runtime rt(options);
    const Device device = gpu ? rt.gpu(0) : rt.socket(0);
    const std::int64_t before = op_pool::live();
    std::int64_t most = 0;
    auto x = rt.from_host(std::vector<int>(4, 0), {4}),
         y = rt.from_host(std::vector<int>(4, 0), {4});
    const int ops = gpu ? kOps / 5 : kOps;
    for (int i = 0; i < ops; ++i) {
      device.submit(kAddTo, 1, inout(i % 2 ? x : y));
      if (i % 1024 == 0) most = std::max(most, op_pool::live() - before);
    }
    CHECK(x.to_host()[0] == ops / 2);
    CHECK(y.to_host()[0] == ops / 2);
    CHECK(most <= 1024 + 64);
  }
}
