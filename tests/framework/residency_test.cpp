#include "framework/residency.hpp"

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

Failure* broken(const char* message = "broken") {
  return Failure::make(FailureKind::Injected, "copy", "link0", message);
}

std::int64_t queued(const DrainedFabric& machine) {
  std::int64_t sum = 0;
  for (const auto& load : machine.fabric->loads) sum += load->queued_bytes.load();
  return sum;
}

}  // namespace

TEST_CASE("a missing replica is copied once and then shared", "[framework][residency]") {
  DrainedFabric machine(2);
  auto x = machine.filled(0, {100}, 3);
  machine.run_all();
  machine.device(1).submit(kRead, in(x));
  machine.device(1).submit(kRead, in(x));
  machine.device(2).submit(kRead, in(x));
  CHECK(queued(machine) == 800);
  CHECK(machine.take(machine.mailbox(1)).empty());
  const auto copies = machine.take(machine.link(0, 1));
  REQUIRE(copies.size() == 1);
  machine.issue(copies[0]);
  const auto readers = machine.take(machine.mailbox(1));  // issued is enough on the device
  CHECK(readers.size() == 2);
  machine.finish(copies[0]);
  CHECK(machine.memory(1).live_blocks() == 1);
  CHECK(x.state()->replicas.size() == 3);
  for (Op* op : readers) machine.run(op);
  CHECK(machine.run_all() == 2);
  CHECK(queued(machine) == 0);
}

TEST_CASE("no memory gets a second replica from a way that leads through it",
          "[framework][residency]") {
  DrainedFabric machine(2);
  auto x = machine.filled(1, {0}, 3);  // without bytes all ways take as long
  machine.run_all();
  machine.device(0).submit(kRead, in(x));
  machine.run_all();
  CHECK(x.state()->replicas.size() == 2);
  machine.device(2).submit(kRead, in(x));
  machine.run_all();
  CHECK(x.state()->replicas.size() == 3);
}

TEST_CASE("a write frees the other replicas when it settles, not before",
          "[framework][residency]") {
  const Leaks leaks;
  {
    DrainedFabric machine(2);
    auto x = machine.filled(0, {100}, 3);
    machine.device(1).submit(kRead, in(x));
    machine.device(2).submit(kRead, in(x));
    machine.run_all();
    machine.device(1).submit(kUpdate, inout(x));
    CHECK(x.state()->replicas.size() == 1);
    CHECK(machine.memory(0).live_blocks() == 1);
    CHECK(machine.memory(2).live_blocks() == 1);
    machine.run_all();
    CHECK(machine.memory(0).live_blocks() == 0);
    CHECK(machine.memory(0).reserved() == 0);
    CHECK(machine.memory(2).reserved() == 0);
    CHECK(machine.memory(1).reserved() == MemoryPool::round_up(400));
    const auto host = x.to_host();
    machine.run_all();
    CHECK(host.to_vector() == std::vector<int>(100, 4));
  }
  leaks.check();
}

TEST_CASE("an overwritten tensor is not copied", "[framework][residency]") {
  DrainedFabric machine(1);
  auto x = machine.filled(0, {100}, 3);
  machine.run_all();
  machine.device(1).submit(kWrite, out(x));
  CHECK(machine.take(machine.link(0, 1)).empty());
  machine.run_all();
  CHECK(machine.memory(0).live_blocks() == 0);
}

TEST_CASE("to_host is the value at that point of the program", "[framework][residency]") {
  for (std::size_t device : {0u, 1u}) {
    DrainedFabric machine(1);
    auto x = machine.filled(device, {10}, 1);
    const auto before = x.to_host();
    machine.device(device).submit(kUpdate, inout(x));
    const auto after_update = x.to_host();
    x = {};
    machine.run_all();
    CHECK(before.to_vector() == std::vector<int>(10, 1));
    CHECK(after_update.to_vector() == std::vector<int>(10, 2));
  }
}

TEST_CASE("large copies over two hops are cut into chunks that overlap", "[framework][residency]") {
  DrainedFabric machine(2);
  constexpr std::int64_t kCount = 1 << 18;  // 1 MiB
  auto x = machine.filled(1, {kCount}, 5);
  machine.run_all();
  const Future read = machine.device(2).submit(kRead, in(x));
  const auto first = machine.take(machine.link(1, 0));
  REQUIRE(first.size() == 1);  // the others wait for their turn on the lane
  machine.issue(first[0]);
  const auto second_hop = machine.take(machine.link(0, 2));
  const auto second = machine.take(machine.link(1, 0));
  CHECK(second_hop.size() == 1);  // the first chunk goes on while the second is copied
  CHECK(second.size() == 1);
  machine.finish(first[0]);
  machine.run(second_hop[0]);
  machine.run(second[0]);
  CHECK(machine.run_all() == 2 * 4 - 3 + 1);
  CHECK(read.is_settled());
  CHECK(x.state()->replicas.size() == 3);  // the stop on the way is a replica too
  const auto host = x.to_host();
  machine.run_all();
  CHECK(host[0] == 5);
  CHECK(host[kCount - 1] == 5);
}

TEST_CASE("empty tensors are copied without a byte", "[framework][residency]") {
  DrainedFabric machine(2);
  auto x = machine.filled(1, {0}, 5);
  machine.device(2).submit(kUpdate, inout(x));
  const auto host = x.to_host();
  machine.run_all();
  CHECK(host.size() == 0);
  CHECK(host.to_vector().empty());
  for (std::size_t m : {0u, 1u, 2u}) CHECK(machine.memory(m).reserved() == 0);
}

TEST_CASE("a dropped tensor goes when its last op has settled", "[framework][residency]") {
  const Leaks leaks;
  {
    DrainedFabric machine(1);
    auto x = machine.filled(0, {10}, 1);
    machine.device(1).submit(kRead, in(x));
    x = {};
    const std::int64_t tensors = live_tensors();
    CHECK(machine.memory(0).reserved() > 0);
    machine.run_all();
    CHECK(machine.memory(0).reserved() == 0);
    CHECK(machine.memory(1).reserved() == 0);
    CHECK(live_tensors() == tensors - 1);
  }
  leaks.check();
}

TEST_CASE("a failed copy fails its users, and the next use copies again",
          "[framework][residency]") {
  const Leaks leaks;
  {
    DrainedFabric machine(1);
    auto x = machine.filled(0, {10}, 1);
    machine.run_all();
    const Future failing = machine.device(1).submit(kRead, in(x));
    machine.run(machine.take_one(machine.link(0, 1)), broken());
    machine.run_all();
    CHECK(failing.has_failed());
    CHECK(failing.failure()->root_op() == "copy");
    const Future again = machine.device(1).submit(kReadTwo, in(x), in(x));
    CHECK(machine.run_all() == 2);
    CHECK(again.is_settled());
    CHECK_FALSE(again.has_failed());
    CHECK(machine.memory(1).live_blocks() == 1);
    CHECK(machine.memory(1).reserved() == 64);
    const auto host = x.to_host();
    machine.run_all();
    CHECK(host[9] == 1);
  }
  leaks.check();
}

TEST_CASE("a failed stop on the way is replaced, chunks still under way keep their bytes",
          "[framework][residency]") {
  const Leaks leaks;
  {
    DrainedFabric machine(2);
    constexpr std::int64_t kCount = 1 << 17;  // two chunks
    auto x = machine.filled(1, {kCount}, 5);
    machine.run_all();
    const auto reserved = machine.memory(1).reserved();
    const Future failing = machine.device(2).submit(kRead, in(x));
    const auto first = machine.take(machine.link(1, 0));
    REQUIRE(first.size() == 1);
    machine.run(first[0]);
    const auto on_way = machine.take(machine.link(0, 2));  // chunk 0, on its second hop
    REQUIRE(on_way.size() == 1);
    machine.issue(on_way[0]);
    const auto second = machine.take(machine.link(1, 0));
    REQUIRE(second.size() == 1);
    machine.run(second[0], broken());
    // A retry takes the failed stop out; the chunk that reads it has not run yet.
    const Future on_host = machine.device(0).submit(kRead, in(x));
    CHECK(machine.memory(0).live_blocks() >= 1);
    machine.finish(on_way[0]);
    machine.run_all();
    CHECK(failing.has_failed());
    CHECK_FALSE(on_host.has_failed());
    CHECK(queued(machine) == 0);
    const Future again = machine.device(2).submit(kRead, in(x));
    machine.run_all();
    CHECK_FALSE(again.has_failed());
    CHECK(x.state()->replicas.size() == 3);
    for (std::size_t m : {0u, 1u, 2u}) {
      CHECK(machine.memory(m).reserved() == reserved);
      CHECK(machine.memory(m).live_blocks() == 1);
    }
  }
  leaks.check();
}

TEST_CASE("what a failed write left is read twice in one call", "[framework][residency]") {
  const Leaks leaks;
  {
    DrainedFabric machine(1);
    auto x = machine.device(0).tensor<int>({10});
    machine.device(0).submit(kWrite, out(x));
    machine.run(machine.take_one(machine.mailbox(0)), broken("no data"));
    const Future read = machine.device(1).submit(kReadTwo, in(x), in(x));
    CHECK(machine.run_all() == 0);
    REQUIRE(read.has_failed());
    CHECK(read.failure()->root_message() == "no data");
    CHECK(machine.memory(1).reserved() == 64);
    CHECK(queued(machine) == 0);
    machine.device(1).submit(kWrite, out(x));  // a good value again
    machine.run_all();
    const auto host = x.to_host();
    machine.run_all();
    CHECK(host[0] == 7);
    CHECK(machine.memory(1).reserved() == 64);
    x = {};
    CHECK(machine.memory(1).reserved() == 0);
  }
  leaks.check();
}

TEST_CASE("an op that can never fit fails at once with the bytes, and its dependents with it",
          "[framework][residency]") {
  const Leaks leaks;
  {
    DrainedFabric machine(1, 1000);
    Device cpu = machine.device(0), gpu = machine.device(1);
    auto big = gpu.tensor<int>({1000});
    const Future write = gpu.submit(kWrite, out(big));
    REQUIRE(write.is_settled());
    REQUIRE(write.has_failed());
    CHECK(write.failure()->kind() == FailureKind::OutOfMemory);
    CHECK(write.failure()->describe() ==
          "write on gpu0: out of memory: wanted 4000 bytes in mem1, which has 1000 bytes, 0 in "
          "use");
    const Future read = cpu.submit(kRead, in(big));
    CHECK(read.has_failed());
    CHECK(read.failure()->chain() == std::vector<std::string>{"write", "read"});
    const Future update = cpu.submit(kUpdate, inout(big));
    CHECK(update.has_failed());
    CHECK(big.to_host().future().has_failed());
    cpu.submit(kWrite, out(big));  // a value at last
    const auto host = big.to_host();
    machine.run_all();
    CHECK(host[999] == 7);

    const Future too_big_to_read = gpu.submit(kRead, in(big));
    CHECK(too_big_to_read.has_failed());
    const auto still = big.to_host();
    machine.run_all();
    CHECK(still[0] == 7);
    CHECK(machine.memory(1).reserved() == 0);
  }
  leaks.check();
}

TEST_CASE("an op that could not be run does not stand for the write it never waited for",
          "[framework][residency]") {
  DrainedFabric machine(1, 1000);
  auto x = machine.device(0).tensor<int>({1000});
  machine.device(0).submit(kWrite, out(x));
  Op* first = machine.take_one(machine.mailbox(0));  // still running
  REQUIRE(first);
  CHECK(machine.device(1).submit(kRead, in(x)).failure()->kind() == FailureKind::OutOfMemory);
  machine.device(0).submit(kWrite, out(x));
  CHECK(machine.take(machine.mailbox(0)).empty());
  machine.run(first);
  CHECK(machine.run_all() == 1);
}

TEST_CASE("a source is chosen by what the links publish", "[framework][residency]") {
  DrainedFabric machine(2);
  auto x = machine.filled(0, {1000}, 5);
  machine.device(1).submit(kRead, in(x));
  machine.run_all();
  const TensorState& tensor = *x.state();
  CHECK(choose_source(*machine.fabric, tensor, 2).replica->memory == 0);
  machine.link(0, 2);
  auto& direct = *machine.fabric->path(0, 2).segments[0].load;
  direct.queued_bytes = std::int64_t{1} << 30;
  CHECK(choose_source(*machine.fabric, tensor, 2).replica->memory == 0);  // the only last hop
  direct.queued_bytes = 0;
  CHECK(choose_source(*machine.fabric, tensor, 2).path->segments.size() == 1);
}
