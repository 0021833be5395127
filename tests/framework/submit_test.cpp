#include "framework/submit.hpp"

#include "support/catch.hpp"
#include "support/drained_fabric.hpp"
#include "support/leaks.hpp"
#include "support/thrown.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const auto kRead = Kernel("read").cpu([](Cpu&, In<int>) {});
const auto kReadTwo = Kernel("read_two").cpu([](Cpu&, In<int>, In<int>) {});
const auto kWrite = Kernel("write").cpu([](Cpu&, Out<int> x) { std::fill(x.begin(), x.end(), 7); });
const auto kUpdate = Kernel("update").cpu([](Cpu&, InOut<int> x) {
  for (int& i : x) ++i;
});
const auto kCopy = Kernel("copy_elements").cpu([](Cpu&, In<int> from, Out<int> to) {
  std::copy(from.begin(), from.end(), to.begin());
});

}  // namespace

TEST_CASE("a read waits for the write, a write for the reads, a write for the write",
          "[framework][submit]") {
  const Leaks leaks;
  {
    DrainedFabric machine(0);
    Device cpu = machine.device(0);
    auto x = cpu.tensor<int>({8});
    const Future first = cpu.submit(kWrite, out(x));
    const Future read_a = cpu.submit(kRead, in(x));
    const Future read_b = cpu.submit(kRead, in(x));
    const Future update = cpu.submit(kUpdate, inout(x));
    const Future last = cpu.submit(kWrite, out(x));
    auto ready = machine.take(machine.mailbox(0));
    REQUIRE(ready == std::vector<Op*>{first.op()});
    machine.run(ready[0]);
    ready = machine.take(machine.mailbox(0));  // reads run side by side
    REQUIRE(ready == std::vector<Op*>{read_a.op(), read_b.op()});
    machine.run(ready[1]);
    CHECK(machine.take(machine.mailbox(0)).empty());
    machine.run(ready[0]);
    ready = machine.take(machine.mailbox(0));
    REQUIRE(ready == std::vector<Op*>{update.op()});
    machine.run(ready[0]);
    ready = machine.take(machine.mailbox(0));
    REQUIRE(ready == std::vector<Op*>{last.op()});
    machine.run(ready[0]);
    CHECK(x.future().is_settled());
    const auto host = x.to_host();
    machine.run_all();
    CHECK(host[3] == 7);
  }
  leaks.check();
}

TEST_CASE("ops that share no tensor do not wait for each other", "[framework][submit]") {
  DrainedFabric machine(0);
  Device cpu = machine.device(0);
  auto x = cpu.tensor<int>({8}), y = cpu.tensor<int>({8});
  cpu.submit(kWrite, out(x));
  cpu.submit(kWrite, out(y));
  const auto ready = machine.take(machine.mailbox(0));
  CHECK(ready.size() == 2);
  CHECK(machine.fabric->in_flight() == 2);
  for (Op* op : ready) machine.run(op);
  CHECK(machine.fabric->in_flight() == 0);
}

TEST_CASE("an op waits for the futures after it, and fails with them", "[framework][submit]") {
  DrainedFabric machine(0);
  Device cpu = machine.device(0);
  auto x = cpu.tensor<int>({8});
  Promise gate("gate"), other("other");
  const Future future = cpu.submit(kWrite, out(x), after(gate.future()), after(Future()));
  const Future doomed = cpu.submit(kRead, in(x), after(other.future()));
  CHECK(machine.run_all() == 0);
  gate.fulfil();
  CHECK(machine.run_all() == 1);
  CHECK(future.is_settled());
  other.fail("given up");
  CHECK(machine.run_all() == 0);
  CHECK(thrown<OpError>([&] { doomed.wait(); }) ==
        "other on the program: cancelled: given up (reached other → read)");
}

TEST_CASE("many pending readers are joined, and a write waits for all of them",
          "[framework][submit]") {
  const Leaks leaks;
  {
    DrainedFabric machine(0);
    Device cpu = machine.device(0);
    auto x = machine.filled(0, {1}, 1);
    machine.run_all();
    constexpr std::size_t kReaders = 70'000;  // more than an op has room for
    for (std::size_t i = 0; i < kReaders; ++i) cpu.submit(kRead, in(x));
    CHECK(x.state()->readers.size() <= 256);
    const Future write = cpu.submit(kWrite, out(x));
    auto readers = machine.take(machine.mailbox(0));
    REQUIRE(readers.size() == kReaders);
    for (std::size_t i = 1; i < kReaders; ++i) machine.run(readers[i]);
    CHECK(machine.take(machine.mailbox(0)).empty());
    machine.run(readers[0]);
    CHECK(machine.run_all() == 1);
    CHECK(write.is_settled());
    for (std::size_t i = 0; i < kReaders; ++i) cpu.submit(kRead, in(x));
    x = {};  // a drop waits for all of them too
    CHECK(machine.memory(0).live_blocks() == 1);
    machine.run_all();
    CHECK(machine.memory(0).live_blocks() == 0);
  }
  leaks.check();
}

TEST_CASE("in serial mode each op waits for the one before", "[framework][submit]") {
  DrainedFabric machine(1);
  machine.fabric->serial = true;
  auto x = machine.device(0).tensor<int>({8});
  auto y = machine.device(1).tensor<int>({8});
  machine.device(0).submit(kWrite, out(x));
  machine.device(1).submit(kWrite, out(y));
  machine.device(1).submit(kRead, in(x));
  const Future last = machine.device(0).submit(kRead, in(x));
  CHECK(machine.take(machine.mailbox(1)).empty());
  Op* first = machine.take_one(machine.mailbox(0));
  REQUIRE(first);
  machine.run(first);
  Op* second = machine.take_one(machine.mailbox(1));
  REQUIRE(second);
  machine.issue(second);
  CHECK(machine.take(machine.link(0, 1)).empty());  // issued is not enough
  machine.finish(second);
  Op* copy = machine.take_one(machine.link(0, 1));
  REQUIRE(copy);
  machine.run(copy);
  CHECK(machine.take(machine.mailbox(0)).empty());
  machine.run_all();
  CHECK(last.is_settled());
}

TEST_CASE("a call that breaks the rules is refused and changes nothing", "[framework][submit]") {
  const Leaks leaks;
  {
    DrainedFabric machine(1), other(0);
    Device cpu = machine.device(0), gpu = machine.device(1);
    auto x = machine.filled(0, {8}, 1), unwritten = cpu.tensor<int>({8});
    auto foreign = other.filled(0, {2, 4}, 1);
    machine.run_all();
    other.run_all();
    const auto reserved = machine.memory(0).reserved();

    auto refused = [](auto&& call) { return thrown<UsageError>(call); };
    CHECK(has(refused([&] { gpu.submit(kRead, in(unwritten)); }),
              "read: tensor argument 1 (8) has no value yet: write it first"));
    CHECK(has(refused([&] { cpu.submit(kCopy, in(x), out(x)); }),
              "arguments 1 and 2 are the same tensor"));
    CHECK(has(refused([&] { cpu.submit(kRead, in(Tensor<int>())); }), "is an empty handle"));
    CHECK(has(refused([&] { cpu.submit(kRead, in(foreign)); }), "(2 x 4) belongs to another"));
    // The first argument could have been copied: nothing is sent, nothing stays set aside.
    CHECK(has(refused([&] { gpu.submit(kReadTwo, in(x), in(unwritten)); }), "argument 2"));
    CHECK(has(refused([&] { static_cast<void>(unwritten.to_host()); }), "has no value yet"));
    CHECK(refused([&] { cpu.submit(kReadTwo, in(x), in(x)); }) == "");  // read twice is fine

    machine.run_all();
    CHECK(machine.fabric->in_flight() == 0);
    CHECK(machine.memory(0).reserved() == reserved);
    CHECK(machine.memory(1).reserved() == 0);
    CHECK(x.state()->replicas.size() == 1);
    machine.fabric->closed = true;
    CHECK(has(refused([&] { cpu.submit(kRead, in(x)); }), "its runtime has ended"));
    CHECK(has(refused([&] { static_cast<void>(x.to_host()); }), "its runtime has ended"));
  }
  leaks.check();
}

TEST_CASE("a kernel without a variant for the device is refused", "[framework][submit]") {
  DrainedFabric machine(1);
  auto code = std::make_shared<KernelCode>();
  code->name = "only_cuda";
  const Kernel<In<int>> kernel(code);
  auto x = machine.filled(0, {8}, 1);
  CHECK(thrown<UsageError>([&] { machine.device(0).submit(kernel, in(x)); }) ==
        "kernel only_cuda has no cpu variant, which socket0 needs");
  machine.fabric->places[1]->domain = Domain::Cuda;
  CHECK(thrown<UsageError>([&] { machine.device(1).submit(kRead, in(x)); }) ==
        "kernel read has no cuda variant, which gpu0 needs");
  machine.fabric->places[1]->domain = Domain::Emulated;
}

TEST_CASE("tensors whose bytes no machine could count are refused", "[framework][submit]") {
  const Leaks leaks;
  {
    DrainedFabric machine(0);
    Device cpu = machine.device(0);
    CHECK(has(thrown<UsageError>([&] {
                static_cast<void>(cpu.tensor<double>({1ll << 31, 1ll << 30}));
              }),
              "too large"));
    const auto big = cpu.tensor<float>({1 << 16, 1 << 15});
    CHECK(big.size() == std::int64_t{1} << 31);
    CHECK(big.state()->bytes() == std::size_t{1} << 33);
  }
  leaks.check();
}
