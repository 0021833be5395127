// Counts what a replay takes from the heap: after the first, nothing.
#include <cstdlib>
#include <new>

#include "actors/runtime.hpp"
#include "support/catch.hpp"
#include "topology/discover.hpp"

namespace {

thread_local std::size_t allocations = 0;

}  // namespace

// Not inlined: the compiler would see malloc and delete, or new and free, as pairs that do not
// match.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

using namespace weft;

TEST_CASE("replays allocate nothing and keep no more memory", "[plan]") {
  RuntimeOptions options;
  options.machine = parse_machine("1 socket x 2 cores");
  options.gpus = GpuMode::None;
  options.pin = false;
  options.simulate = false;
  Runtime rt(options);
  const Device device = rt.socket(0);
  const auto add = Kernel("add").cpu([](Cpu&, In<float> x, InOut<float> y) { y[0] += x[0]; });
  auto x = rt.from_host(std::vector<float>{1}, {1}), y = rt.from_host(std::vector<float>{0}, {1});
  const Plan step = rt.record([&] {
    for (int i = 0; i < 8; ++i) device.submit(add, in(x), inout(y));
  });
  // Ten at once, so that the pool of ops has seen as many before it is looked at.
  const auto replay_ten = [&] {
    for (int i = 0; i < 10; ++i) step.replay();
    rt.wait_idle();
  };
  for (int i = 0; i < 100; ++i) replay_ten();
  const std::size_t reserved = rt.fabric().memories[0]->reserved();
  std::size_t rounds_that_allocated = 0;
  for (int round = 0; round < 10'000; ++round) {
    const std::size_t before = allocations;
    replay_ten();
    rounds_that_allocated += allocations != before;
  }
  CHECK(rounds_that_allocated <= 100);  // blocks may gather in another thread's cache
  CHECK(rt.fabric().memories[0]->reserved() == reserved);
  CHECK(y.to_host()[0] == 8 * 101'001);
}
