#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "framework/memory_pool.hpp"
#include "framework/op_pool.hpp"
#include "support/sanitized.hpp"
#include "tests/actors/cuda/fake_variants.hpp"
#include "tests/actors/cuda/host_stream.hpp"
#include "tests/actors/random_graph.hpp"
#include "topology/discover.hpp"

namespace weft::test {

/// How many random graphs a test runs: `WEFT_SEEDS`, else `normally`.
inline std::uint64_t seeds(std::uint64_t normally) {
  const char* text = std::getenv("WEFT_SEEDS");
  return text && *text ? std::strtoull(text, nullptr, 10) : normally;
}

/// One `divisor`th of `seeds(normally)`, of that a part under TSan; at least one. For suites beside
/// `random_graph_test`, which always runs all.
inline std::uint64_t seeds_or_part(std::uint64_t normally, std::uint64_t divisor_under_tsan,
                                   std::uint64_t divisor = 1) {
  const std::uint64_t all = fewer_under_tsan<std::uint64_t>(1, divisor_under_tsan) * divisor;
  return std::max<std::uint64_t>(1, seeds(normally) / all);
}

/// The machines that random graphs run on; `cuda` is this one, where it has CUDA devices.
inline const std::vector<std::string>& graph_machines() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> made = {
        "1 socket x 2 cores, 2 gpus", "2 sockets x 2 cores, 4 gpus, nvlink",
        "2 sockets x 1 core, 3 gpus", "1 socket x 1 core, 2 gpus, nvlink"};
#if WEFT_HAVE_CUDA
    if (runs_on_fake_cuda()) made.clear();  // the rest is tested without it
    if (cuda_device_count() > 0) made.push_back("cuda");
#endif
    return made;
  }();
  return all;
}

/// `options` for one of them.
inline RuntimeOptions on_graph_machine(RuntimeOptions options, const std::string& machine) {
  options.gpus = machine == "cuda" ? GpuMode::Cuda : GpuMode::Emulated;
  if (machine != "cuda") options.machine = parse_machine(machine);
  options.gpu_memory_bytes = std::size_t{256} << 20;
  return options;
}

/// What must be as before once everything is done and every handle is gone.
struct Footprint {
  std::int64_t ops = 0, tensors = 0, blocks = 0;
  std::size_t reserved = 0;
  friend bool operator==(const Footprint&, const Footprint&) = default;

  static Footprint of(const Fabric& fabric) {
    Footprint now{op_pool::live(), live_tensors(), 0, 0};
    for (const auto& memory : fabric.memories) {
      now.blocks += memory->live_blocks();
      now.reserved += memory->reserved();
    }
    return now;
  }
  [[nodiscard]] std::string to_string() const {
    return std::to_string(ops) + " ops, " + std::to_string(tensors) + " tensors, " +
           std::to_string(blocks) + " blocks, " + std::to_string(reserved) + " bytes reserved";
  }
};

/// Waits until the footprint is `before` again: an actor may hold the last op for a moment after it
/// has settled. Returns what it is in the end.
inline Footprint settled_footprint(const Runtime& runtime, const Footprint& before) {
  runtime.wait_idle();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (;;) {
    const Footprint now = Footprint::of(runtime.fabric());
    if (now == before || std::chrono::steady_clock::now() > give_up) return now;
    std::this_thread::yield();
  }
}

/// A program of several threads over shared tensors.
struct Program {
  std::vector<GraphTensor> shared;
  std::vector<Graph> threads;
};

inline Program make_program(std::uint64_t seed, double throwing, bool reduces = true) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15ull + 1);
  Program program;
  const std::size_t threads = random() % 4 < 2 ? 1 : 2 + random() % 3;
  if (threads > 1) program.shared = {{false, 33}, {true, 16}, {false, 7}, {false, 1}};
  GraphLimits limits;
  limits.most_ops = static_cast<std::uint32_t>(200 / threads);
  limits.most_tensors = static_cast<std::uint32_t>(threads == 1 ? 30 : 26 / threads);
  limits.throwing = throwing;
  limits.reduces = reduces;
  limits.shared = program.shared;
  for (std::size_t t = 0; t < threads; ++t) {
    limits.first_step = static_cast<std::uint32_t>(1000 * t);
    program.threads.push_back(make_graph(random, limits));
  }
  return program;
}

/// Runs `program`, waits for its end and compares with the oracle. Returns what did not agree.
/// With `before_reads`, calls it between the threads' end and the reads of shared tensors.
inline std::string run_program(const Runtime& runtime, const Program& program,
                               std::size_t* failures = nullptr) {
  const auto shared = fill_shared(runtime, program.shared);
  std::vector<std::vector<StepResult>> results(program.threads.size());
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < program.threads.size(); ++t)
    others.emplace_back([&, t] { results[t] = submit_graph(runtime, program.threads[t], shared); });
  results[0] = submit_graph(runtime, program.threads[0], shared);
  for (auto& other : others) other.join();
  std::vector<StepResult> reads;
  for (const TensorHandle& tensor : shared)
    reads.push_back(read_tensor(tensor, program.threads[0].reads_away));
  runtime.wait_idle();
  for (const auto& of_thread : results)
    for (const StepResult& result : of_thread)
      if (!result.future.is_settled()) return "an op has not settled though nothing is in flight";

  Oracle oracle(program.shared);
  for (std::size_t t = 0; t < program.threads.size(); ++t)
    oracle.run(program.threads[t], results[t]);
  for (std::uint32_t t = 0; t < reads.size(); ++t) oracle.compare_shared(t, reads[t]);
  if (failures) *failures += oracle.failures();
  return oracle.mismatch();
}

}  // namespace weft::test
