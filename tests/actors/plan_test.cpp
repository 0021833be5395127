#include "framework/plan.hpp"

#include <functional>
#include <numeric>
#include <thread>

#include "actors/collective.hpp"
#include "support/thrown.hpp"
#include "tests/actors/cuda/through_host.hpp"
#include "tests/actors/each_engine.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const auto kFill = on_all(Kernel("fill").cpu([](Cpu&, int value, Out<int> x) {
  for (int& i : x) i = value;
}));
const auto kAddTo = on_all(Kernel("add_to").cpu([](Cpu&, int value, InOut<int> x) {
  for (int& i : x) i += value;
}));
const auto kSum = on_all(Kernel("sum").cpu([](Cpu&, In<int> x, In<int> y, Out<int> z) {
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = x[i] + y[i];
}));
const auto kContribute = on_all(Kernel("contribute").cpu([](Cpu&, int value, Reduce<int> x) {
  for (int& i : x) i += value;
}));
const auto kFailIf = thrower_on_all(Kernel("fail_if").cpu([](Cpu&, int fails, In<int>, Out<int> y) {
  if (fails) throw std::runtime_error("asked to fail");
  for (int& i : y) i = 1;
}));
const auto kNamed = on_all(Kernel("named").cpu([](Cpu&, std::string text, Out<int> x) {
  for (int& i : x) i = static_cast<int>(text.size());
}));

std::vector<int> filled(int value) {
  return std::vector<int>(5, value);
}

RuntimeOptions options_of(const EngineCase& engine, bool serial) {
  RuntimeOptions options = engine.options();
  options.serial = serial;
  return options;
}

// Records a random graph, replays it and compares every tensor with the oracle.
std::string run_random_plan(const Runtime& runtime, std::uint64_t seed) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15ull + 5);
  GraphLimits limits;
  limits.most_ops = 60;
  limits.most_tensors = 12;
  Graph graph = make_graph(random, limits);
  std::erase_if(graph.steps, [](const GraphStep& step) { return step.kind != StepKind::Run; });
  for (GraphStep& step : graph.steps) step.gated = false, step.after = -1;
  const std::size_t replays = seed % 8 == 0 ? 50 : 1 + random() % 5;

  // Every tensor has a value from the start, so that each replay may read what it likes.
  const auto tensors = fill_shared(runtime, graph.tensors);
  const Plan plan = runtime.record([&] { submit_ops(runtime, graph, tensors); });
  std::size_t read_between = random() % (replays + 1);
  for (std::size_t r = 0; r < replays; ++r) {
    if (r == read_between) read_tensor(tensors[random() % tensors.size()]).future.wait();
    plan.replay();
  }
  std::vector<StepResult> reads;
  for (const TensorHandle& tensor : tensors) reads.push_back(read_tensor(tensor));
  runtime.wait_idle();

  Oracle oracle(graph.tensors);
  const std::vector<StepResult> done(graph.steps.size());
  for (std::size_t r = 0; r < replays + 1; ++r) oracle.run(graph, done);
  for (std::uint32_t t = 0; t < reads.size(); ++t) oracle.compare_shared(t, reads[t]);
  return oracle.mismatch();
}

}  // namespace

TEST_CASE("random graphs recorded and replayed equal the oracle to the bit", "[plan][random]") {
  for (const bool serial : {false, true})
    for (const EngineCase& engine : engines()) {
      INFO(engine.name << (serial ? ", serial" : ""));
      Runtime runtime(options_of(engine, serial));
      Footprint before = Footprint::of(runtime.fabric());
      if (serial) ++before.ops;  // the last op of all
      const std::uint64_t count = seeds_or_part(800, 4, serial ? 100 : 20);
      for (std::uint64_t seed = 0; seed < count; ++seed) {
        INFO("seed " << seed);
        REQUIRE(run_random_plan(runtime, seed) == "");
        const Footprint after = settled_footprint(runtime, before);
        INFO(before.to_string() << " before, " << after.to_string() << " after");
        REQUIRE((after == before));
      }
    }
}

TEST_CASE("random graphs whose ops go out together equal the oracle to the bit", "[plan][random]") {
  for (const EngineCase& engine : engines()) {
    INFO(engine.name);
    RuntimeOptions options = options_of(engine, false);
    options.bundles = true;
    options.trace = false;
    Runtime runtime(std::move(options));
    const Footprint before = Footprint::of(runtime.fabric());
    for (std::uint64_t seed = 0; seed < seeds_or_part(800, 4, 10); ++seed) {
      INFO("seed " << seed);
      REQUIRE(run_random_plan(runtime, seed) == "");
      const Footprint after = settled_footprint(runtime, before);
      INFO(before.to_string() << " before, " << after.to_string() << " after");
      REQUIRE((after == before));
    }
  }
}

namespace {

// A runtime of each engine that has a GPU, with bundles.
void for_each_bundling_engine(const std::function<void(Runtime&, Device)>& check) {
  for (const EngineCase& engine : engines()) {
    INFO(engine.name);
    RuntimeOptions options = options_of(engine, false);
    options.bundles = true;
    options.trace = false;
    Runtime rt(std::move(options));
    if (rt.gpu_count() == 0) continue;
    check(rt, rt.gpu(0));
    rt.wait_idle();
  }
}

bool explains(const Plan& plan, const std::string& text) {
  return has(plan.explain(), text);
}

}  // namespace

TEST_CASE("short ops on a GPU go out as one, also with what the program sets", "[plan]") {
  for_each_bundling_engine([](Runtime& rt, Device gpu) {
    const auto x = rt.from_host(filled(1), {5}), y = rt.from_host(filled(0), {5});
    const auto z = rt.from_host(filled(7), {5});
    const Plan step = rt.record([&] {
      for (int i = 0; i < 4; ++i) gpu.submit(kAddTo, 1, inout(x));
      gpu.submit(kSum, in(x), in(z), out(y));
      gpu.submit(kAddTo, 2, inout(y));
    });
    CHECK_FALSE(explains(step, "as one"));
    rt.wait_idle();  // what comes over a link is there
    step.replay().wait();
    CHECK(explains(step, "as one on gpu0: add_to, sum (6 ops)"));
    for (int i = 0; i < 5; ++i) step.replay();
    CHECK(x.to_host().to_vector() == filled(29));
    CHECK(y.to_host().to_vector() == filled(38));

    step.set_scalar_of<0>(kAddTo, 4, 10);  // the last call
    step.replay();
    CHECK(y.to_host().to_vector() == filled(50));
    CHECK(explains(step, "as one on gpu0: add_to, sum (6 ops)"));
    // What is bound may come over a link: what needs none of it does not wait for that.
    const auto other = rt.from_host(filled(100), {5});
    step.bind(z, other);
    step.replay();
    CHECK(y.to_host().to_vector() == filled(147));
    CHECK(explains(step, "as one on gpu0: add_to (4 ops)"));
    CHECK(explains(step, "as one on gpu0: sum, add_to (2 ops)"));
    // Written to other bytes from outside: the next replays see it.
    rt.socket(0).submit(kFill, 0, out(x));
    for (int i = 0; i < 3; ++i) step.replay();
    CHECK(x.to_host().to_vector() == filled(12));
    CHECK(explains(step, "as one on gpu0: add_to (4 ops)"));
  });
}

TEST_CASE("each replay has the scalars and tensors set before it, however many are under way",
          "[plan]") {
  for_each_bundling_engine([](Runtime& rt, Device gpu) {
    std::vector<Tensor<int>> inputs, outputs;
    for (int i = 0; i < 3; ++i) inputs.push_back(rt.from_host(filled(100 * (i + 1)), {5}));
    for (int i = 0; i < 40; ++i) outputs.push_back(rt.tensor<int>({5}));
    const auto x = rt.from_host(filled(1), {5}), y = rt.tensor<int>({5}), z = rt.tensor<int>({5});
    const Plan step = rt.record([&] {
      gpu.submit(kSum, in(x), in(inputs[0]), out(y));
      for (int i = 0; i < 6; ++i) gpu.submit(kAddTo, 0, inout(y));
      gpu.submit(kSum, in(y), in(x), out(z));
      gpu.submit(kNamed, std::string("12"), out(x));
    });
    for (int round = 0; round < 2; ++round) {
      rt.wait_idle();
      for (int i = 0; i < 40; ++i) {
        step.bind(inputs[0], inputs[static_cast<std::size_t>(i) % 3]);
        step.bind(z, outputs[static_cast<std::size_t>(i)]);
        step.set_scalar_of<0>(kAddTo, static_cast<std::size_t>(i) % 6, i);
        // Some as they were, so that nothing counts as set again and again.
        if (round == 0 && i % 5 == 4) step.set_scalar<0>(kNamed, std::string(std::size_t(i), '-'));
        step.replay();
      }
      int calls[6] = {}, length = 2;
      for (int i = 36 * round; round == 1 && i < 40; ++i) calls[i % 6] = i;
      if (round == 1) calls[4] = 34, calls[5] = 35, length = 39;
      int value = 0;
      for (int i = 0; i < 40; ++i) {
        if (round == 0 && i == 0) value = 2;  // as the recording has left it
        if (round == 1 && i == 0) value = 39;
        calls[i % 6] = i;
        int sum = value + 100 * (i % 3 + 1);
        for (const int call : calls) sum += call;
        INFO("round " << round << ", replay " << i);
        REQUIRE(outputs[static_cast<std::size_t>(i)].to_host().to_vector() == filled(sum + value));
        if (round == 0 && i % 5 == 4) length = i;
        value = length;
      }
    }
    CHECK(explains(step, "as one on gpu0"));
  });
}

TEST_CASE("of a bundle what fails once can go out again", "[plan]") {
  for_each_bundling_engine([](Runtime& rt, Device gpu) {
    auto x = rt.from_host(filled(1), {5}), y = rt.tensor<int>({5});
    const Plan step = rt.record([&] {
      gpu.submit(kFailIf, 0, in(x), out(y));
      gpu.submit(kAddTo, 1, inout(y));
    });
    for (int i = 0; i < 3; ++i) step.replay().wait();
    CHECK(explains(step, "as one on gpu0"));
    for (int round = 0; round < 3; ++round) {
      step.set_scalar<0>(kFailIf, 1);
      CHECK(has(thrown<OpError>([&] { step.replay().wait(); }), "asked to fail"));
      step.set_scalar<0>(kFailIf, 0);
      step.replay().wait();
      CHECK(y.to_host().to_vector() == filled(2));
    }
  });
}

TEST_CASE("a plan runs once while it is recorded, then once a replay", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto x = rt.from_host(filled(1), {5});
    const Plan step = rt.record([&] {
      device.submit(kAddTo, 1, inout(x));
      other.submit(kAddTo, 10, inout(x));
    });
    CHECK(x.to_host().to_vector() == filled(12));
    step.replay();
    step.replay().wait();
    CHECK(x.to_host().to_vector() == filled(34));
    device.submit(kAddTo, 100, inout(x));
    step.replay();
    CHECK(x.to_host().to_vector() == filled(145));
  });
}

TEST_CASE("intermediates live with the plan, contributions are added up in it", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto x = rt.from_host(filled(1), {5}), total = rt.from_host(filled(0), {5});
    const Plan step = rt.record([&] {
      auto once = rt.tensor<int>({5}), twice = rt.tensor<int>({5});
      device.submit(kSum, in(x), in(x), out(once));
      other.submit(kSum, in(once), in(once), out(twice));
      for (int i = 0; i < 20; ++i) (i % 2 ? device : other).submit(kContribute, i, reduce(total));
      device.submit(kSum, in(twice), in(once), out(x));
    });
    step.replay();
    CHECK(x.to_host().to_vector() == filled(36));
    CHECK(total.to_host().to_vector() == filled(380));
  });
}

TEST_CASE("other tensors and other scalars for a replay", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto x = rt.from_host(filled(1), {5}), more = rt.from_host(filled(7), {5});
    auto y = rt.tensor<int>({5}), elsewhere = rt.tensor<int>({5});
    const Plan step = rt.record([&] {
      other.submit(kSum, in(x), in(x), out(y));
      device.submit(kAddTo, 1, inout(y));
    });
    CHECK(y.to_host().to_vector() == filled(3));
    for (int i = 0; i < 4; ++i) {  // two inputs in turn
      step.bind(x, i % 2 ? x : more).set_scalar<0>(kAddTo, 10 * i).replay();
      CHECK(y.to_host().to_vector() == filled((i % 2 ? 2 : 14) + 10 * i));
    }
    step.bind(y, elsewhere).bind(x, more).replay();
    CHECK(elsewhere.to_host().to_vector() == filled(44));
    CHECK(y.to_host().to_vector() == filled(32));
    auto wrong = rt.tensor<int>({6});
    CHECK(has(thrown<UsageError>([&] { step.bind(x, wrong); }), "record again for another shape"));
    CHECK(has(thrown<UsageError>([&] { step.bind(wrong, x); }), "uses no such tensor"));
    CHECK(has(thrown<UsageError>([&] { step.bind(y, more); }), "would be the same"));
    CHECK(has(thrown<UsageError>([&] { step.set_scalar<0>(kFill, 1); }), "does not call kernel"));
    const Plan twice = rt.record([&] {
      device.submit(kAddTo, 1, inout(y));
      device.submit(kAddTo, 2, inout(y));
    });
    twice.set_scalar_of<0>(kAddTo, 1, 50).replay();
    CHECK(y.to_host().to_vector() == filled(32 + 3 + 51));
    CHECK(has(thrown<UsageError>([&] { twice.set_scalar_of<0>(kAddTo, 2, 1); }),
              "of which the plan has 2"));
    step.bind(x, rt.tensor<int>({5}));
    CHECK(has(thrown<UsageError>([&] { step.replay(); }), "has no value yet"));
  });
}

TEST_CASE("scalars that are no plain bytes are copied for each replay", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device) {
    auto x = rt.tensor<int>({5});
    const Plan step = rt.record([&] { device.submit(kNamed, std::string(100, 'a'), out(x)); });
    step.replay();
    step.set_scalar<0>(kNamed, std::string(200, 'b')).replay();
    CHECK(x.to_host().to_vector() == filled(200));
  });
}

TEST_CASE("a failure in a replay reaches its future and its dependents, and ends with it",
          "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto x = rt.from_host(filled(1), {5}), y = rt.tensor<int>({5}), z = rt.tensor<int>({5});
    const Plan step = rt.record([&] {
      device.submit(kFailIf, 0, in(x), out(y));
      other.submit(kSum, in(y), in(y), out(z));
    });
    CHECK(z.to_host().to_vector() == filled(2));
    step.set_scalar<0>(kFailIf, 1);
    const Future failed = step.replay();
    CHECK(has(thrown<OpError>([&] { failed.wait(); }), "asked to fail"));
    CHECK(has(thrown<OpError>([&] { z.to_host().wait(); }), "asked to fail"));
    step.set_scalar<0>(kFailIf, 0).replay().wait();
    CHECK(z.to_host().to_vector() == filled(2));
  });
}

TEST_CASE("an input that failed fails the replay, a new one mends it", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device) {
    auto x = rt.tensor<int>({5}), y = rt.tensor<int>({5});
    device.submit(kFill, 4, out(x));
    const Plan step = rt.record([&] { device.submit(kSum, in(x), in(x), out(y)); });
    device.submit(kFailIf, 1, in(y), out(x));
    CHECK(has(thrown<OpError>([&] { step.replay().wait(); }), "asked to fail"));
    device.submit(kFill, 5, out(x));
    step.replay().wait();
    CHECK(y.to_host().to_vector() == filled(10));
  });
}

TEST_CASE("two threads replay two plans on the same devices while a third submits", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    if (rt.is_simulated()) return;  // one thread of the program moves virtual time
    auto shared = rt.from_host(filled(1), {5});
    const auto count = [&](int add, int* result) {
      auto x = rt.from_host(filled(0), {5}), y = rt.tensor<int>({5});
      const Plan step = rt.record([&] {
        device.submit(kAddTo, add, inout(x));
        other.submit(kSum, in(x), in(shared), out(y));
        device.submit(kAddTo, 0, inout(y));
      });
      for (int i = 0; i < 200; ++i) step.replay();
      *result = y.to_host()[0];
    };
    int first = 0, second = 0;
    std::thread a([&] { count(1, &first); }), b([&] { count(3, &second); });
    for (int i = 0; i < 200; ++i) device.submit(kAddTo, 1, inout(shared));
    a.join();
    b.join();
    CHECK(first >= 202);
    CHECK(first <= 402);
    CHECK(second >= 604);
    CHECK(second <= 804);
    CHECK(shared.to_host()[0] == 201);
  });
}

TEST_CASE("a plan is dropped while its replays are under way", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    auto x = rt.from_host(filled(1), {5});
    {
      const Plan step = rt.record([&] {
        auto y = rt.tensor<int>({5});
        device.submit(kSum, in(x), in(x), out(y));
        other.submit(kSum, in(y), in(y), out(x));
      });
      for (int i = 0; i < 8; ++i) step.replay();
    }
    CHECK(x.to_host().to_vector() == filled(1 << 18));
  });
}

TEST_CASE("collectives are part of a plan", "[plan]") {
#if WEFT_HAVE_CUDA
  if (runs_on_fake_cuda()) {
    WARN("skipped: what stands in for CUDA runs no reducing kernels");
    return;
  }
#endif
  for_each_engine([](Runtime& rt, Device device, Device other) {
    const Collective both = rt.collective({device, other});
    auto x = rt.tensor<float>({64}), y = rt.tensor<float>({64});
    x = rt.uniform({64}, device, 1);
    y = rt.uniform({64}, other, 2);
    const auto first = x.to_host().to_vector(), second = y.to_host().to_vector();
    const Plan step = rt.record([&] { both.all_reduce(std::vector<Tensor<float>>{x, y}); });
    step.replay();
    const auto sum = x.to_host().to_vector();
    CHECK(y.to_host().to_vector() == sum);
    for (std::size_t i = 0; i < sum.size(); ++i) REQUIRE(sum[i] == 2 * (first[i] + second[i]));
  });
}

TEST_CASE("plans within plans, and plans of nothing", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device other) {
    const Plan nothing = rt.record([] {});
    CHECK(nothing.size() == 0);
    nothing.replay().wait();
    Plan().replay().wait();

    auto x = rt.from_host(filled(0), {5}), y = rt.tensor<int>({5});
    const Plan inner = rt.record([&] {
      device.submit(kAddTo, 1, inout(x));
      other.submit(kSum, in(x), in(x), out(y));
    });
    const Plan outer = rt.record([&] {
      inner.replay();
      device.submit(kAddTo, 10, inout(x));
      inner.replay();
    });
    CHECK(outer.size() >= 2 * inner.size() + 1);
    CHECK(x.to_host().to_vector() == filled(13));
    outer.replay();
    CHECK(x.to_host().to_vector() == filled(25));
    CHECK(y.to_host().to_vector() == filled(50));
    CHECK(has(thrown<UsageError>([&] { (void)rt.record([&] { (void)rt.record([] {}); }); }),
              "recording already"));
  });
}

TEST_CASE("what a plan cannot replay is said when it is recorded", "[plan]") {
  for_each_engine([](Runtime& rt, Device device, Device) {
    auto x = rt.from_host(filled(1), {5});
    CHECK(has(thrown<UsageError>([&] { (void)rt.record([&] { (void)x.to_host(); }); }),
              "the program's memory"));
    const Future before = device.submit(kAddTo, 1, inout(x));
    CHECK(has(thrown<UsageError>([&] {
                (void)rt.record([&] { device.submit(kAddTo, 1, inout(x), after(before)); });
              }),
              "no op of the recording"));
    CHECK(thrown<std::runtime_error>([&] {
            (void)rt.record([&] {
              device.submit(kAddTo, 1, inout(x));
              throw std::runtime_error("half way");
            });
          }) == "half way");
    CHECK(x.to_host().to_vector() == filled(4));  // what was submitted ran
    const Plan step = rt.record([&] {
      const Future first = device.submit(kAddTo, 1, inout(x));
      auto y = rt.tensor<int>({5});
      device.submit(kFill, 1, out(y), after(first));
    });
    step.replay();
    CHECK(x.to_host().to_vector() == filled(6));
  });
}

TEST_CASE("a plan outlives its runtime and says so", "[plan]") {
  const EngineCase& engine = engines().front();
  Plan step;
  {
    Runtime rt(engine.options());
    auto x = rt.from_host(filled(1), {5});
    const Device device = engine.device(rt);
    step = rt.record([&] { device.submit(kAddTo, 1, inout(x)); });
    rt.wait_idle();
  }
  CHECK(has(thrown<UsageError>([&] { step.replay(); }), "runtime has ended"));
}

TEST_CASE("a plan explains itself", "[plan]") {
  const EngineCase& engine = engines().front();
  Runtime rt(engine.options());
  const Device device = engine.device(rt), other = engine.other(rt);
  auto x = rt.from_host(filled(1), {5});
  const Plan step = rt.record([&] {
    auto y = rt.tensor<int>({5});
    device.submit(kSum, in(x), in(x), out(y));
    other.submit(kSum, in(y), in(y), out(x));
    device.submit(kAddTo, 1, inout(x));
  });
  INFO(step.explain());
  CHECK(has(step.explain(), "plan: " + std::to_string(step.size()) + " ops"));
  CHECK(has(step.explain(), device.name()));
  CHECK(has(step.dot(), "digraph plan"));
  CHECK(has(step.json(), "\"kernel\": \"add_to\""));
}
