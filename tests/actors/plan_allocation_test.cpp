// Counts what a replay takes from the heap: after the first, nothing.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "actors/runtime.hpp"
#include "support/catch.hpp"
#include "topology/discover.hpp"

// Sanitizers have a heap of their own, whose new and delete must be left alone.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEFT_COUNTS_ALLOCATIONS 0
#else
#define WEFT_COUNTS_ALLOCATIONS 1
#endif

namespace {

thread_local std::size_t allocations = 0;

}  // namespace

#if WEFT_COUNTS_ALLOCATIONS
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
#endif

using namespace weft;

TEST_CASE("replays allocate nothing and keep no more memory", "[plan]") {
  if (!WEFT_COUNTS_ALLOCATIONS) WARN("under a sanitizer the heap is not counted, only the pools");
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
  // What is left then in some rounds are messages that wake lanes which have parked.
  const auto allocated_in_ten = [&] {
    const std::size_t before = allocations;
    for (int i = 0; i < 10; ++i) step.replay();
    const std::size_t made = allocations - before;
    rt.wait_idle();
    return made;
  };
  for (int i = 0; i < 100; ++i) allocated_in_ten();
  const std::size_t reserved = rt.fabric().memories[0]->reserved();
  std::size_t fewest = 1000;
  for (int round = 0; round < 10'000; ++round) {
    fewest = std::min(fewest, allocated_in_ten());
  }
  CHECK(fewest == 0);
  CHECK(rt.fabric().memories[0]->reserved() == reserved);
  CHECK(y.to_host()[0] == 8 * 101'001);
}
