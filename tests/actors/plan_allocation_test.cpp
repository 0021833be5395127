// Counts what a replay takes from the heap: after the first, nothing.
#include <cstdlib>
#include <new>

#include "actors/runtime.hpp"
#include "support/catch.hpp"
#include "topology/discover.hpp"

namespace {

thread_local std::size_t allocations = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
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
  for (int i = 0; i < 100; ++i) step.replay().wait();
  const std::size_t reserved = rt.fabric().memories[0]->reserved();
  std::size_t most = 0;
  for (int round = 0; round < 200; ++round) {
    const std::size_t before = allocations;
    for (int i = 0; i < 500; ++i) step.replay();
    most = std::max(most, allocations - before);
    rt.wait_idle();
  }
  CHECK(most <= 8);  // the op pool's depot may grow while replays queue up
  CHECK(rt.fabric().memories[0]->reserved() == reserved);
  CHECK(y.to_host()[0] == 8 * 100'101);
}
