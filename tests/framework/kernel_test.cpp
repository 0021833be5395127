#include "framework/kernel.hpp"

#include <memory>

#include "support/catch.hpp"
#include "support/drained_fabric.hpp"
#include "support/leaks.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("arguments reach the kernel in its order, scalars among views", "[framework][kernel]") {
  DrainedFabric machine(0);
  auto x = machine.filled(0, {2, 3}, 2), y = machine.filled(0, {3}, 5);
  auto z = machine.device(0).tensor<double>({4});
  struct Seen {
    std::int64_t rows = 0, columns = 0;
    std::size_t size = 0;
    std::string text;
    double scale = 0;
  } seen;
  const auto kernel = Kernel("mixed").cpu([](Cpu&, Seen* to, In<int> a, const std::string& text,
                                             InOut<int> b, double scale, Out<double> c) {
    *to = {a.dim(0), a.dim(1), c.size(), text, scale};
    b[0] += a[5];
    for (double& value : c) value = scale;
  });
  CHECK(kernel.name() == "mixed");
  machine.device(0).submit(kernel, &seen, in(x), "a text", inout(y), 3, out(z));
  machine.run_all();
  CHECK(seen.rows == 2);
  CHECK(seen.columns == 3);
  CHECK(seen.size == 4);
  CHECK(seen.text == "a text");
  CHECK(seen.scale == 3.0);  // converted from int
  const auto ys = y.to_host();
  const auto zs = z.to_host();
  machine.run_all();
  CHECK(ys.to_vector() == std::vector<int>{7, 5, 5});
  CHECK(zs[3] == 3.0);
}

TEST_CASE("scalars live as long as their op, whether it runs or fails", "[framework][kernel]") {
  const Leaks leaks;
  {
    DrainedFabric machine(0);
    const auto held = std::make_shared<int>(1);
    const auto kernel = Kernel("holder").cpu(
        [](Cpu&, const std::shared_ptr<int>& value, Out<int> x) { x[0] = *value; });
    auto x = machine.device(0).tensor<int>({1});
    Promise gate("gate");
    machine.device(0).submit(kernel, held, out(x));
    machine.device(0).submit(kernel, held, out(x), after(gate.future()));
    CHECK(held.use_count() == 3);
    machine.run_all();
    CHECK(held.use_count() == 2);
    gate.fail("never");
    machine.run_all();
    CHECK(held.use_count() == 1);
    const Kernel copy = kernel;
    CHECK(copy.code() == kernel.code());
  }
  leaks.check();
}

TEST_CASE("a reduce argument starts from zero", "[framework][kernel]") {
  DrainedFabric machine(1);
  auto sum = machine.device(1).tensor<float>({300});
  const auto kernel = Kernel("check_zero").cpu([](Cpu&, Reduce<float> x) {
    for (float& value : x) value += 1;  // over poison it would be NaN
  });
  machine.device(1).submit(kernel, reduce(sum));
  machine.device(1).submit(kernel, reduce(sum));
  const auto host = sum.to_host();
  machine.run_all();
  CHECK(host.to_vector() == std::vector<float>(300, 2.0f));
}

TEST_CASE("a cost is worked out from sizes and scalars without data", "[framework][kernel]") {
  DrainedFabric machine(0);
  auto x = machine.device(0).tensor<float>({100, 7});
  const auto kernel = Kernel("costly")
                          .cpu([](Cpu&, double factor, Out<float> out) {
                            for (float& value : out) value = static_cast<float>(factor);
                          })
                          .cost([](double factor, Out<float> out) {
                            return Cost{factor * static_cast<double>(out.size()),
                                        4.0 * static_cast<double>(out.dim(1))};
                          });
  machine.device(0).submit(kernel, 2.0, out(x));
  Op* op = machine.take_one(machine.mailbox(0));
  REQUIRE(op);
  const Cost cost = kernel.code()->cost(*op);
  CHECK(cost.flops == 1400);
  CHECK(cost.bytes == 28);
  machine.run(op);
}

TEST_CASE("a function runs once as an op, with what it holds", "[framework][kernel]") {
  const Leaks leaks;
  {
    DrainedFabric machine(0);
    for (int round = 1; round <= 3; ++round) {  // one place in the source, other values
      auto x = machine.device(0).tensor<int>({2});
      machine.device(0).run(
          "once",
          [round](Cpu& cpu, Out<int> to) {
            cpu.parallel_for(to.size(), [&](std::size_t i) { to[i] = round; });
          },
          out(x));
      const auto host = x.to_host();
      machine.run_all();
      CHECK(host[1] == round);
    }
  }
  leaks.check();
}

TEST_CASE("a function that is run goes where its first parameter says", "[framework][kernel]") {
  DrainedFabric machine(0);
  auto x = machine.filled(0, {3}, 5);
  int seen = 0;
  machine.device(0).run(
      "host", [&seen](Cpu&, In<int> values) { seen = values[2]; }, in(x));
  machine.run_all();
  CHECK(seen == 5);
  const auto on_gpu = [](Cuda& cuda, Out<int> values) {
    cuda.clear(values.data(), values.size() * sizeof(int));
  };
  CHECK_THROWS_WITH(machine.device(0).run("device", on_gpu, out(x)),
                    contains_text("device has no cpu variant"));
}
