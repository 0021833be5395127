#include "framework/gate.hpp"

#include <functional>
#include <optional>

#include "framework/call_builder.hpp"
#include "support/catch.hpp"
#include "support/drained_fabric.hpp"
#include "support/leaks.hpp"

using namespace weft;
using namespace weft::test;

// What looks as if memory would never come back, and does. Each of these is a moment that a gate on
// a thread of its own meets now and then; here the test is that thread.
namespace {

constexpr std::size_t kBytes = 4096;  // of a tensor: a size that pools hand out as it is
constexpr std::int64_t kInts = kBytes / sizeof(int);

const auto kUse = Kernel("use").cpu([](Cpu&, In<int>) {});
const auto kFill =
    Kernel("fill_up").cpu([](Cpu&, Out<int> x) { std::fill(x.begin(), x.end(), 7); });

/// Two GPUs with room for two tensors each, and a host with room for `host_tensors`.
class GatedFabric {
 public:
  explicit GatedFabric(std::size_t host_tensors) : machine(2, 2 * kBytes, host_tensors * kBytes) {
    machine.fabric->link_admissions.push_back(std::make_unique<Admission>(1024));
    gate.emplace(*machine.fabric, *machine.fabric->link_admissions.back(), true, [this] {
      is_asked = true;
      if (when_asked) when_asked();
    });
    machine.fabric->gate = &*gate;
  }
  ~GatedFabric() {
    run_on();
    machine.fabric->gate = nullptr;
    gate.reset();
  }
  GatedFabric(const GatedFabric&) = delete;
  GatedFabric& operator=(const GatedFabric&) = delete;

  // As the gate's actor and the devices do it, until nobody has anything to do.
  void run_on() {
    for (;;) {
      const bool did = machine.run_all() > 0;
      if (!std::exchange(is_asked, false) && !did) return;
      gate->look();
    }
  }

  /// The only value of a tensor is on that GPU.
  Tensor<int> on_gpu(std::uint32_t gpu) {
    auto made = machine.filled(1 + gpu, {kInts}, 3);
    machine.run_all();
    return made;
  }
  /// It is there and in the host's memory.
  Tensor<int> on_both(std::uint32_t gpu) {
    auto made = on_gpu(gpu);
    machine.device(0).submit(kUse, in(made));
    machine.run_all();
    return made;
  }

  DrainedFabric machine;
  std::optional<Gate> gate;
  bool is_asked = false;
  std::function<void()> when_asked;
};

}  // namespace

TEST_CASE("room that is made in the host pays for what exceeds its budget first",
          "[framework][gate]") {
  const Leaks leaks;
  {
    GatedFabric gated(2);
    const auto a = gated.on_both(1), b = gated.on_both(1);  // the host could let both go
    const auto c = gated.on_gpu(0), d = gated.on_gpu(0);
    constexpr std::size_t kBeyond = 64;
    gated.machine.memory(0).force_reserve(kBeyond);  // as sums of contributions are
    const auto e = gated.machine.device(1).tensor<int>({kInts});
    const Future filled = gated.machine.device(1).submit(kFill, out(e));
    CHECK(gated.gate->is_shut());
    gated.run_on();
    REQUIRE(filled.is_settled());
    CHECK_NOTHROW(filled.wait());
    CHECK_FALSE(gated.gate->is_shut());
    gated.machine.memory(0).unreserve(kBeyond);
  }
  leaks.check();
}

TEST_CASE("bytes that a submission has in its hands may come back", "[framework][gate]") {
  const Leaks leaks;
  {
    GatedFabric gated(1);
    const auto a = gated.on_both(1);
    const auto c = gated.on_gpu(0), d = gated.on_gpu(0);
    // Another thread's, which takes the room in the host as soon as there is some.
    std::optional<Reservation> other;
    gated.when_asked = [&] {
      if (other || gated.machine.memory(0).room() < kBytes) return;
      other.emplace(*gated.machine.fabric, Budget::Strict);
      CHECK(other->add(0, kBytes));
    };
    const auto e = gated.machine.device(1).tensor<int>({kInts});
    const Future filled = gated.machine.device(1).submit(kFill, out(e));
    for (int i = 0; i < 3; ++i) gated.gate->look();
    CHECK(other);
    CHECK_FALSE(filled.is_settled());
    CHECK(gated.gate->must_poll());
    gated.is_asked = false;
    gated.when_asked = nullptr;
    other.reset();
    CHECK(gated.is_asked);
    gated.run_on();
    REQUIRE(filled.is_settled());
    CHECK_NOTHROW(filled.wait());
  }
  leaks.check();
}

TEST_CASE("bytes of a tensor whose last handle was just dropped come back", "[framework][gate]") {
  const Leaks leaks;
  {
    GatedFabric gated(1);
    auto a = gated.on_gpu(0);
    TensorState* const b = make_tensor_state(*gated.machine.fabric, {kInts}, sizeof(int), 0);
    Replica* const kept = make_replica(*gated.machine.fabric, *b, 1);
    REQUIRE(gated.machine.memory(1).try_reserve(kBytes));
    add_replica(*b, kept);
    b->handles.store(0);  // as far as its thread has come
    const auto c = gated.machine.device(1).tensor<int>({kInts});
    const Future both = gated.machine.device(1).run(
        "both", [](Cpu&, In<int>, Out<int> x) { x[0] = 1; }, in(a), out(c));
    for (int i = 0; i < 3; ++i) gated.gate->look();
    CHECK_FALSE(both.is_settled());
    gated.is_asked = false;
    b->handles.store(1);
    drop_handle(b);
    CHECK(gated.is_asked);
    gated.run_on();
    REQUIRE(both.is_settled());
    CHECK_NOTHROW(both.wait());
  }
  leaks.check();
}

TEST_CASE("what can never fit still fails as soon as nothing is under way", "[framework][gate]") {
  const Leaks leaks;
  {
    GatedFabric gated(1);
    const auto a = gated.on_gpu(0), b = gated.on_gpu(0);
    gated.machine.memory(0).force_reserve(kBytes);  // what nobody will ever give back
    const auto c = gated.machine.device(1).tensor<int>({kInts});
    const Future filled = gated.machine.device(1).submit(kFill, out(c));
    gated.run_on();
    REQUIRE(filled.is_settled());
    CHECK_THROWS_WITH(filled.wait(), Catch::Matchers::Contains("out of memory"));
    gated.machine.memory(0).unreserve(kBytes);
  }
  leaks.check();
}
