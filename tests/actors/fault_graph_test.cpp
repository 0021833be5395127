#include <atomic>
#include <memory>

#include "support/catch.hpp"
#include "tests/actors/graph_runs.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// Faults in copies, each with a message of its own, while switched on.
struct CopyFaults {
  std::atomic<bool> on{false};
  std::atomic<std::uint64_t> copies{0}, made{0};
  std::uint64_t one_in = 7;

  std::optional<std::string> operator()(const LaneOp& op) {
    if (op.name != "copy" || !on.load(std::memory_order_relaxed)) return std::nullopt;
    const std::uint64_t n = copies.fetch_add(1, std::memory_order_relaxed);
    if ((n * 0x9e3779b97f4a7c15ull >> 32) % one_in != 0) return std::nullopt;
    return "copy fault " + std::to_string(made.fetch_add(1, std::memory_order_relaxed));
  }
};

RuntimeOptions options_for(const std::string& machine, const std::shared_ptr<CopyFaults>& faults) {
  RuntimeOptions options;
  options.emulated = EmulatedOptions{};
  options.emulated->fault = [faults](const LaneOp& op) { return (*faults)(op); };
  options.emulated->delay = [faults](const LaneOp&) {
    const std::uint64_t n = faults->copies.fetch_add(1, std::memory_order_relaxed);
    return std::chrono::nanoseconds((n * 0x9e3779b97f4a7c15ull >> 32) % 11 == 0 ? 30'000 : 0);
  };
  options.serial = false;
  options.pin = false;
  options.host_memory_bytes = std::size_t{1} << 30;
  return on_graph_machine(std::move(options), machine);
}

void run_seeds(double throwing, bool copies, std::uint64_t count) {
  const std::uint64_t per_machine = (count + graph_machines().size() - 1) / graph_machines().size();
  std::uint64_t seed = 500'000;
  std::size_t failures = 0;
  for (const std::string& machine : graph_machines()) {
    const auto faults = std::make_shared<CopyFaults>();
    Runtime runtime(options_for(machine, faults));
    const Footprint before = Footprint::of(runtime.fabric());
    for (std::uint64_t i = 0; i < per_machine; ++i, ++seed) {
      Program program = make_program(seed, throwing);
      if (copies) program.shared.clear(), program.threads.resize(1);
      if (copies) {
        std::mt19937_64 random(seed);
        GraphLimits limits;
        limits.throwing = throwing;
        program.threads[0] = make_graph(random, limits);
      }
      faults->on = copies;
      const std::string mismatch = run_program(runtime, program, &failures);
      INFO("seed " << seed << " on " << machine);
      REQUIRE(mismatch == "");
      const Footprint after = settled_footprint(runtime, before);
      INFO(before.to_string() << " before, " << after.to_string() << " after");
      REQUIRE((after == before));
      for (const auto& load : runtime.fabric().loads) REQUIRE(load->queued_bytes.load() == 0);
    }
  }
  // Copies over CUDA are not made to fail.
  const bool is_cuda_alone = graph_machines().size() == 1 && graph_machines()[0] == "cuda";
  if (throwing > 0 || !is_cuda_alone) CHECK(failures > per_machine);
}

}  // namespace

TEST_CASE("faults in ops fail exactly their dependents, each with the root cause",
          "[actors][random][faults]") {
  run_seeds(0.05, false, seeds_or_part(2000, 2, 4));
}

TEST_CASE("faults in copies fail only what needs them, and nothing leaks",
          "[actors][random][faults]") {
  run_seeds(0, true, seeds_or_part(2000, 2, 4));
}

TEST_CASE("faults in ops and copies together", "[actors][random][faults]") {
  run_seeds(0.05, true, seeds_or_part(2000, 2, 4));
}
