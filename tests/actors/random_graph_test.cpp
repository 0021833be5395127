#include <cstdlib>

#include "support/catch.hpp"
#include "tests/actors/graph_runs.hpp"

using namespace weft;
using namespace weft::test;

namespace {

std::uint64_t hashed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  return z ^ (z >> 29);
}

// Most ops go on at once, some take some ten microseconds: enough to change every order.
std::chrono::nanoseconds random_delay(const LaneOp&) {
  static std::atomic<std::uint64_t> calls{0};
  const std::uint64_t roll = hashed(calls.fetch_add(1, std::memory_order_relaxed) + 1);
  return std::chrono::nanoseconds(roll % 16 == 0 ? roll / 16 % 60'000 : 0);
}

RuntimeOptions options_for(const std::string& machine, bool serial) {
  RuntimeOptions options;
  options.emulated = EmulatedOptions{};
  options.emulated->delay = serial ? nullptr : random_delay;
  options.serial = serial;
  options.pin = false;
  options.watchdog = std::chrono::seconds(20);
  options.host_memory_bytes = std::size_t{1} << 30;
  return on_graph_machine(std::move(options), machine);
}

void run_seeds(bool serial, std::uint64_t count) {
  // One runtime for many graphs: making its threads costs more than a graph.
  const std::uint64_t per_machine = (count + graph_machines().size() - 1) / graph_machines().size();
  std::uint64_t seed = 0;
  for (const std::string& machine : graph_machines()) {
    Runtime runtime(options_for(machine, serial));
    Footprint before = Footprint::of(runtime.fabric());
    if (serial) ++before.ops;  // the last op of all
    for (std::uint64_t i = 0; i < per_machine; ++i, ++seed) {
      const std::string mismatch = run_program(runtime, make_program(seed, 0));
      INFO("seed " << seed << " on " << machine);
      REQUIRE(mismatch == "");
      const Footprint after = settled_footprint(runtime, before);
      INFO(before.to_string() << " before, " << after.to_string() << " after");
      REQUIRE((after == before));
    }
  }
}

}  // namespace

TEST_CASE("random graphs equal the oracle to the bit", "[actors][random]") {
  run_seeds(false, seeds(2000));
}

TEST_CASE("random graphs in serial mode equal the oracle to the bit", "[actors][random]") {
  run_seeds(true, seeds(2000) / 8);
}

TEST_CASE("random graphs that nobody places equal the oracle to the bit, under every policy",
          "[actors][random]") {
  std::uint64_t seed = 0;
  for (const char* name : {"auto", "earliest_finish", "nearest", "round_robin", "late", "heft"})
    for (const std::string& machine : graph_machines()) {
      RuntimeOptions options = options_for(machine, false);
      // Where all fits, and where it does not.
      if (machine != "cuda" && seed % 2 == 0) options.memory = "gpu*=6KB";
      Runtime runtime(std::move(options));
      const auto policy = std::shared_ptr(make_placement(name));
      (void)runtime.anywhere(policy);
      const Footprint before = Footprint::of(runtime.fabric());
      for (std::uint64_t i = 0; i < seeds(2000) / 100 + 1; ++i, ++seed) {
        Program program = make_program(seed, 0);
        for (Graph& graph : program.threads) graph.policy = policy.get();
        INFO("seed " << seed << " on " << machine << ", " << name);
        REQUIRE(run_program(runtime, program) == "");
        const Footprint after = settled_footprint(runtime, before);
        INFO(before.to_string() << " before, " << after.to_string() << " after");
        REQUIRE((after == before));
      }
    }
}
