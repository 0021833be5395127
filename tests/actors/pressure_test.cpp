#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "actors/memory_budgets.hpp"
#include "framework/gate.hpp"
#include "framework/trace.hpp"
#include "support/catch.hpp"
#include "tests/actors/graph_runs.hpp"

using namespace weft;
using namespace weft::test;

// Working sets that do not fit into a GPU's memory.
namespace {

constexpr std::size_t kBlock = 4096;  // bytes of a block: a size that pools hand out as it is
constexpr std::int64_t kFloats = kBlock / sizeof(float);

RuntimeOptions options_for(bool simulate, std::size_t gpu_bytes) {
  RuntimeOptions options;
  options.machine = parse_machine("1 socket x 1 core, 2 gpus");
  options.gpus = GpuMode::Emulated;
  options.emulated = EmulatedOptions{};
  options.emulated->memory_bytes = gpu_bytes;
  options.simulate = simulate;
  options.data = SimulatedData::Real;
  options.host_memory_bytes = std::size_t{64} << 20;
  options.serial = false;
  options.pin = false;
  options.trace = true;
  options.watchdog = std::chrono::seconds(20);
  return options;
}

Kernel<InOut<float>> add_one_kernel() {
  return Kernel("add_one").cpu([](Cpu&, InOut<float> x) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += 1;
  });
}
const auto add_one = add_one_kernel();
const auto add_first =
    Kernel("add_first").cpu([](Cpu&, In<float> x, InOut<float> sum) { sum[0] += x[0]; });

std::vector<Tensor<float>> make_blocks(const Runtime& runtime, std::size_t count) {
  std::vector<Tensor<float>> blocks;
  for (std::size_t i = 0; i < count; ++i)
    blocks.push_back(
        runtime.from_host(std::vector<float>(kFloats, static_cast<float>(i)), {kFloats}));
  return blocks;
}

// How often a block must be brought in at the least, if `capacity` fit: with all uses known, the
// one whose next use is farthest goes (Belady 1966).
std::size_t least_loads(const std::vector<std::size_t>& uses, std::size_t capacity) {
  std::map<std::size_t, std::vector<std::size_t>> when;  // block: its uses, the last first
  for (std::size_t i = uses.size(); i-- > 0;) when[uses[i]].push_back(i);
  std::set<std::size_t> there;
  std::size_t loads = 0;
  auto next = [&](std::size_t block) {
    return when[block].empty() ? std::numeric_limits<std::size_t>::max() : when[block].back();
  };
  for (const std::size_t block : uses) {
    when[block].pop_back();
    if (there.contains(block)) continue;
    ++loads;
    if (there.size() == capacity)
      there.erase(*std::max_element(there.begin(), there.end(), [&](std::size_t a, std::size_t b) {
        return next(a) < next(b);
      }));
    there.insert(block);
  }
  return loads;
}

std::vector<std::size_t> in_turn(std::size_t blocks, std::size_t passes) {
  std::vector<std::size_t> uses;
  for (std::size_t p = 0; p < passes; ++p)
    for (std::size_t b = 0; b < blocks; ++b) uses.push_back(b);
  return uses;
}

std::vector<std::size_t> at_random(std::size_t blocks, std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::size_t> uses;
  for (std::size_t i = 0; i < count; ++i) uses.push_back(random() % blocks);
  return uses;
}

// Copies to and from gpu0, in blocks.
struct Traffic {
  std::size_t in = 0, out = 0;
};

Traffic traffic_of(const Runtime& runtime) {
  Traffic traffic;
  const TraceData trace = runtime.tracer()->collect();
  for (const TraceData::Span& span : trace.spans) {
    if (span.kind != SpanKind::Copy) continue;
    const bool is_in = trace.tracks[span.track].lane.find("gpu") != std::string::npos;
    (is_in ? traffic.in : traffic.out) += span.bytes / kBlock;
  }
  return traffic;
}

// The largest op of a random graph fits; of these tensors eight do.
constexpr std::size_t kLittle = 2560;

Program small_program(std::uint64_t seed) {
  Program program = make_program(seed, 0);
  for (Graph& thread : program.threads)
    for (std::size_t t = program.shared.size(); t < thread.tensors.size(); ++t)
      thread.tensors[t].size = 33;
  return program;
}

std::uint64_t evictions(const Runtime& runtime) {
  return runtime.fabric().gate->evictions();
}

}  // namespace

TEST_CASE("working sets larger than the memory run with little more traffic than need be") {
  struct Case {
    std::string name;
    std::size_t blocks, capacity;
    std::vector<std::size_t> uses;
  };
  const std::vector<Case> cases = {
      {"21 blocks in 20, in turn", 21, 20, in_turn(21, 30)},
      {"1.01 times the memory, in turn", 101, 100, in_turn(101, 8)},
      {"twice the memory, in turn", 40, 20, in_turn(40, 20)},
      {"ten times the memory, in turn", 200, 20, in_turn(200, 6)},
      {"twice the memory, at random", 40, 20, at_random(40, 1500)},
      {"ten times the memory, at random", 200, 20, at_random(200, 1500)},
  };
  for (const Case& each : cases) {
    INFO(each.name);
    Runtime runtime(options_for(true, each.capacity * kBlock));
    const auto blocks = make_blocks(runtime, each.blocks);
    std::vector<float> expected;
    for (std::size_t b = 0; b < each.blocks; ++b) expected.push_back(static_cast<float>(b));
    for (const std::size_t b : each.uses) {
      runtime.gpu(0).submit(add_one, inout(blocks[b]));
      expected[b] += 1;
    }
    runtime.wait_idle();
    const Traffic traffic = traffic_of(runtime);
    const std::size_t least = least_loads(each.uses, each.capacity);
    // What is brought in is changed, so all but what stays is brought back.
    const std::size_t bound = 2 * least - each.capacity;
    WARN(each.name << ": " << traffic.in << " in, " << traffic.out << " out, at the least " << least
                   << " in; "
                   << static_cast<double>(traffic.in + traffic.out) / static_cast<double>(bound)
                   << " x Belady's traffic");
    CHECK(traffic.in >= least);
    CHECK(static_cast<double>(traffic.in + traffic.out) <= 1.3 * static_cast<double>(bound));
    for (std::size_t b = 0; b < each.blocks; ++b) {
      const auto values = blocks[b].to_host();
      CHECK(values[0] == expected[b]);
      CHECK(values[kFloats - 1] == expected[b]);
    }
  }
}

TEST_CASE("working sets larger than the memory give the same results in real time") {
  for (const bool is_random : {false, true}) {
    const auto uses = is_random ? at_random(60, 3000) : in_turn(60, 50);
    Runtime runtime(options_for(false, 20 * kBlock));
    const auto blocks = make_blocks(runtime, 60);
    auto sum = runtime.from_host(std::vector<float>(kFloats, 0.0f), {kFloats});
    std::vector<float> now(60);
    for (std::size_t b = 0; b < 60; ++b) now[b] = static_cast<float>(b);
    double expected = 0;
    for (const std::size_t b : uses) {
      runtime.gpu(0).submit(add_one, inout(blocks[b]));
      runtime.gpu(b % 2).submit(add_first, in(blocks[b]), inout(sum));
      expected += static_cast<double>(now[b] += 1);
    }
    CHECK(static_cast<double>(sum.to_host()[0]) == expected);
    for (std::size_t b = 0; b < 60; ++b) CHECK(blocks[b].to_host()[0] == now[b]);
    CHECK(evictions(runtime) > 0);
    CHECK(runtime.in_flight() == 0);
  }
}

TEST_CASE("random graphs in little memory equal the oracle to the bit", "[actors][random]") {
  for (const bool simulate : {false, true}) {
    for (const bool serial : {false, true}) {
      RuntimeOptions options = options_for(simulate, kLittle);
      options.machine = parse_machine("2 sockets x 2 cores, 3 gpus");
      options.serial = serial;
      options.trace = false;
      Runtime runtime(std::move(options));
      Footprint before = Footprint::of(runtime.fabric());
      if (serial) ++before.ops;  // the last op of all
      // A simulation has one thread, in which TSan sees nothing.
      const std::uint64_t count =
          seeds_or_part(400, simulate ? 8 : 2, (serial ? 8 : 1) * (simulate ? 2 : 1));
      for (std::uint64_t seed = 0; seed < count; ++seed) {
        INFO("seed " << seed << (simulate ? " simulated" : " emulated"));
        REQUIRE(run_program(runtime, small_program(seed)) == "");
        const Footprint after = settled_footprint(runtime, before);
        INFO(before.to_string() << " before, " << after.to_string() << " after");
        REQUIRE((after == before));
      }
      WARN(evictions(runtime) << " evictions " << (simulate ? "simulated" : "emulated"));
      CHECK(evictions(runtime) > 0);
    }
  }
}

TEST_CASE("an op that can never fit fails at once and says what it wants and what there is") {
  for (const bool simulate : {false, true}) {
    Runtime runtime(options_for(simulate, 20 * kBlock));
    // One tile larger than the budget.
    const auto large = runtime.from_host(std::vector<float>(30 * kFloats), {30 * kFloats});
    const Future never = runtime.gpu(0).submit(add_one, inout(large));
    CHECK_THROWS_WITH(never.wait(), Catch::Matchers::Contains(std::to_string(30 * kBlock)) &&
                                        Catch::Matchers::Contains(std::to_string(20 * kBlock)));
    // Two that fit one by one only, while others keep the memory full.
    const auto blocks = make_blocks(runtime, 40);
    for (const auto& block : blocks) runtime.gpu(0).submit(add_one, inout(block));
    const auto a = runtime.from_host(std::vector<float>(12 * kFloats), {12 * kFloats});
    const auto b = runtime.from_host(std::vector<float>(12 * kFloats), {12 * kFloats});
    const Future both = runtime.gpu(0).submit(add_first, in(a), inout(b));
    CHECK_THROWS_WITH(both.wait(), Catch::Matchers::Contains("out of memory") &&
                                       Catch::Matchers::Contains(std::to_string(24 * kBlock)));
    CHECK_THROWS_AS(b.to_host().wait(), OpError);
    CHECK(a.to_host()[0] == 0);
    runtime.gpu(0).submit(add_one, inout(a)).wait();  // fits
    for (std::size_t i = 0; i < blocks.size(); ++i)
      CHECK(blocks[i].to_host()[0] == static_cast<float>(i + 1));
  }
}

TEST_CASE("a memory without any bytes refuses tensors and runs what needs none") {
  RuntimeOptions options = options_for(false, 1);
  Runtime runtime(std::move(options));
  const auto blocks = make_blocks(runtime, 1);
  CHECK_THROWS_WITH(runtime.gpu(0).submit(add_one, inout(blocks[0])).wait(),
                    Catch::Matchers::Contains("out of memory"));
  std::atomic<int> ran{0};
  runtime.gpu(0).run("nothing", [&ran](Cpu&) { ++ran; }).wait();
  CHECK(ran == 1);
}

TEST_CASE("contributions to a sum are evicted and brought back as all else") {
  for (const bool serial : {false, true}) {
    RuntimeOptions options = options_for(false, 4 * kBlock);
    options.serial = serial;
    Runtime runtime(std::move(options));
    const auto blocks = make_blocks(runtime, 8);
    const auto adds = Kernel("adds").cpu([](Cpu&, In<float> x, Reduce<float> sum) {
      for (std::size_t i = 0; i < x.size(); ++i) sum[i] += x[i];
    });
    const auto sum = runtime.from_host(std::vector<float>(kFloats, 0.0f), {kFloats});
    std::vector<float> read;
    for (int round = 0; round < 40; ++round) {
      for (const auto& block : blocks) runtime.gpu(0).submit(adds, in(block), reduce(sum));
      if (round % 8 == 7) read.push_back(sum.to_host()[1]);
    }
    CHECK(read == std::vector<float>{8 * 28, 16 * 28, 24 * 28, 32 * 28, 40 * 28});
  }
}

TEST_CASE("ops that evict each other's tensors take turns") {
  Runtime runtime(options_for(false, 2 * kBlock));
  const auto blocks = make_blocks(runtime, 4);
  constexpr int kRounds = 200;
  auto work = [&](std::size_t first) {
    for (int i = 0; i < kRounds; ++i)
      runtime.gpu(0).submit(add_first, in(blocks[first]), inout(blocks[first + 1]));
  };
  std::thread other([&] { work(2); });
  work(0);
  other.join();
  CHECK(blocks[1].to_host()[0] == 1 + 0 * kRounds);
  CHECK(blocks[3].to_host()[0] == 3 + 2 * kRounds);
}

TEST_CASE("values that are overwritten before anyone reads them are not written back") {
  Runtime runtime(options_for(true, 4 * kBlock));
  const auto fill = Kernel("fill").cpu([](Cpu&, float value, Out<float> x) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = value;
  });
  std::vector<Tensor<float>> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(runtime.tensor<float>({kFloats}));
  for (int pass = 0; pass < 5; ++pass)
    for (const auto& block : blocks)
      runtime.gpu(0).submit(fill, static_cast<float>(pass), out(block));
  runtime.wait_idle();
  CHECK(evictions(runtime) >= 4 * 12);
  // Only what the last pass left, and what was evicted before anything waited.
  CHECK(runtime.fabric().gate->bytes_written_back() <= 2 * 12 * kBlock);
  for (const auto& block : blocks) CHECK(block.to_host()[5] == 4);
}

TEST_CASE("what waits for memory has the op's future, failures and scalars") {
  Runtime runtime(options_for(false, 2 * kBlock));
  const auto blocks = make_blocks(runtime, 6);
  const auto boom =
      Kernel("boom").cpu([](Cpu&, InOut<float>) { throw std::runtime_error("bang"); });
  Promise begin("begin");
  // Holds all of the memory until the rest is submitted.
  const Future first =
      runtime.gpu(0).submit(add_first, in(blocks[0]), inout(blocks[1]), after(begin.future()));
  std::vector<Future> queued;
  for (std::size_t i = 2; i < 6; ++i)
    queued.push_back(runtime.gpu(0).submit(add_one, inout(blocks[i])));
  const Future failed = runtime.gpu(0).submit(boom, inout(blocks[2]));
  const Future dependent = runtime.gpu(0).submit(add_one, inout(blocks[2]));
  CHECK(runtime.fabric().gate->is_shut());
  const auto made = std::make_shared<int>(0);
  // What it owns waits with it; a short string points into itself.
  const std::string token = "token";
  const Future moved = runtime.gpu(0).run(
      "moved", [made, token](Cpu&, In<float>) { *made = token == "token" ? 42 : 0; },
      in(blocks[3]));
  const Future written = blocks[4].future();
  CHECK_FALSE(written.is_settled());
  const auto read = blocks[5].to_host();
  std::atomic<bool> told{false};
  queued[0].on_settled([&told] { told = true; });
  const Future behind = runtime.socket(0).run(
      "behind", [](Cpu&) {}, after(queued[3]));
  CHECK_FALSE(behind.is_settled());
  begin.fulfil();

  first.wait();
  for (const Future& future : queued) future.wait();
  written.wait();
  behind.wait();
  moved.wait();
  CHECK(*made == 42);
  CHECK(told);
  CHECK(read[0] == 6);
  CHECK_THROWS_WITH(failed.wait(), Catch::Matchers::Contains("bang"));
  REQUIRE_THROWS_AS(dependent.wait(), OpError);
  CHECK(dependent.failure()->root_op() == "boom");
  CHECK(dependent.failure()->chain() == std::vector<std::string>{"boom", "add_one"});
  CHECK_THROWS_AS(blocks[2].to_host().wait(), OpError);
}

TEST_CASE("submissions wait at the length of the window only, and callbacks never") {
  Runtime runtime(options_for(false, 4 * kBlock));
  const auto blocks = make_blocks(runtime, 12);
  std::atomic<int> again{0};
  std::function<void()> more = [&] {
    const int round = again.fetch_add(1);
    if (round >= 300) return;
    runtime.gpu(0)
        .submit(add_first, in(blocks[static_cast<std::size_t>(round) % 11]), inout(blocks[11]))
        .on_settled(more);
  };
  more();
  for (int i = 0; i < 5000; ++i)
    runtime.gpu(0).submit(add_one, inout(blocks[static_cast<std::size_t>(i * 7) % 11]));
  while (again < 301) std::this_thread::yield();
  runtime.wait_idle();
  float sum = 0;
  for (std::size_t b = 0; b < 11; ++b) sum += blocks[b].to_host()[0];
  CHECK(sum == 5000 + 55);
}

TEST_CASE("a device that is lost takes what waits for its memory along") {
  for (const bool simulate : {false, true}) {
    Runtime runtime(options_for(simulate, 4 * kBlock));
    const auto blocks = make_blocks(runtime, 16);
    for (int pass = 0; pass < 3; ++pass)
      for (const auto& block : blocks) runtime.gpu(0).submit(add_one, inout(block));
    runtime.lose(runtime.gpu(0));
    std::vector<Future> later;
    for (const auto& block : blocks) later.push_back(runtime.gpu(0).submit(add_one, inout(block)));
    runtime.wait_idle();
    for (const Future& future : later) CHECK_THROWS_AS(future.wait(), OpError);
    const auto fresh = make_blocks(runtime, 1);
    runtime.gpu(1).submit(add_one, inout(fresh[0])).wait();
    CHECK(fresh[0].to_host()[0] == 1);
  }
}

TEST_CASE("a runtime ends while submissions wait for memory") {
  for (const bool simulate : {false, true}) {
    std::vector<Tensor<float>> blocks;
    Runtime runtime(options_for(simulate, 3 * kBlock));
    blocks = make_blocks(runtime, 30);
    for (int i = 0; i < 600; ++i)
      runtime.gpu(0).submit(add_one, inout(blocks[static_cast<std::size_t>(i) % 30]));
    blocks.clear();
  }
}

TEST_CASE("budgets are given by name, and what is not understood is named") {
  const Machine machine = parse_machine("2 sockets x 1 core, 2 gpus");
  auto budget_of = [&](const std::string& text, MemoryId memory) {
    return memory_budgets(text, machine)[memory.value];
  };
  const MemoryId gpu0 = machine.gpus[0].memory, gpu1 = machine.gpus[1].memory;
  const MemoryId host = machine.sockets[0].memories.front();
  CHECK(budget_of("gpu0=2GB", gpu0) == std::size_t{2} << 30);
  CHECK_FALSE(budget_of("gpu0=2GB", gpu1));
  CHECK(budget_of("gpu*=1GB, gpu1=64MB", gpu0) == std::size_t{1} << 30);
  CHECK(budget_of("gpu*=1GB, gpu1=64MB", gpu1) == std::size_t{64} << 20);
  CHECK(budget_of("socket0=4096", host) == 4096u);
  CHECK(budget_of("mem0=0", MemoryId{0}) == 0u);
  CHECK_FALSE(budget_of("pinned=1GB", host));
  CHECK(pinned_budget("gpu0=2GB, pinned = 1GB") == std::size_t{1} << 30);
  CHECK(pinned_budget("pinned=0") == 0u);
  CHECK_FALSE(pinned_budget("gpu0=2GB"));
  CHECK_THROWS_WITH(pinned_budget("pinned=much"), Catch::Matchers::Contains("pinned=much"));
  CHECK_FALSE(budget_of("", gpu0));
  for (const char* wrong : {"gpu0", "gpu0=", "gpu0=many", "gpu7=1GB", "=1GB", "gpu0=-1GB"}) {
    INFO(wrong);
    CHECK_THROWS_WITH(memory_budgets(wrong, machine), Catch::Matchers::Contains(wrong));
  }
  RuntimeOptions options = options_for(false, 20 * kBlock);
  options.memory = "gpu0=4KB";
  Runtime runtime(std::move(options));
  CHECK(runtime.fabric().memories[runtime.gpu(0).place().memory]->budget() == 4096);
  CHECK(runtime.fabric().memories[runtime.gpu(1).place().memory]->budget() == 20 * kBlock);
}

TEST_CASE("plans make room for what they use") {
  Runtime runtime(options_for(false, 8 * kBlock));
  const auto blocks = make_blocks(runtime, 4);
  const auto others = make_blocks(runtime, 12);
  const Plan plan = runtime.record([&] {
    for (const auto& block : blocks) runtime.gpu(0).submit(add_one, inout(block));
  });
  for (int round = 0; round < 20; ++round) {
    for (const auto& other : others) runtime.gpu(0).submit(add_one, inout(other));
    plan.replay();
  }
  for (std::size_t b = 0; b < 4; ++b) CHECK(blocks[b].to_host()[0] == static_cast<float>(b + 21));
  for (std::size_t b = 0; b < 12; ++b) CHECK(others[b].to_host()[0] == static_cast<float>(b + 20));
}
