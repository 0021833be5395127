#include "apps/bench/simulation.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "actors/runtime.hpp"
#include "apps/bench/statistics.hpp"
#include "apps/common/output.hpp"
#include "apps/common/progress.hpp"
#include "apps/common/table.hpp"
#include "topology/discover.hpp"

namespace weft::bench {
namespace {

const auto kStep =
    Kernel("step").cpu([](Cpu&, In<float>, InOut<float>) {}).cost([](In<float> x, InOut<float>) {
      return Cost{2.0 * static_cast<double>(x.size()), 12.0 * static_cast<double>(x.size())};
    });

// Kernels in rows on all devices; every eighth reads what the next device made, over a link.
double seconds_of(const RuntimeOptions& made, std::size_t ops, double& virtual_seconds) {
  Runtime rt(made);
  std::vector<Device> devices;
  for (std::size_t g = 0; g < rt.gpu_count(); ++g) devices.push_back(rt.gpu(g));
  if (devices.empty()) devices.push_back(rt.socket(0));
  constexpr std::size_t kRows = 4;
  std::vector<Tensor<float>> rows;
  for (std::size_t r = 0; r < kRows * devices.size(); ++r)
    rows.push_back(rt.zeros({256, 256}, devices[r % devices.size()]));
  rt.wait_idle();
  const auto virtual_start = rt.now();
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < ops; ++i) {
    const std::size_t row = i % rows.size();
    const std::size_t from =
        i % 8 == 7 ? (row + 1) % rows.size() : (row + devices.size()) % rows.size();
    devices[row % devices.size()].submit(kStep, in(rows[from]), inout(rows[row]));
  }
  rt.wait_idle();
  virtual_seconds = std::chrono::duration<double>(rt.now() - virtual_start).count();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int run_simulation(const SimulationOptions& options, apps::Output& output) {
  RuntimeOptions made = apps::to_runtime_options(options.common, false);
  made.simulate = true;
  if (!made.data) made.data = SimulatedData::None;
  if (!made.machine) made.machine = parse_machine("2 sockets x 8 cores, 2 gpus, nvlink");
  output.print("ops through %s, simulated; median of %u runs\n", made.machine->source.c_str(),
               options.repeats);
  apps::Table table({"ops", "time", "ops/s", "ns/op", "virtual"});
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  double first = 0, last = 0;
  for (std::size_t ops : options.ops) {
    double virtual_seconds = 0;
    std::vector<double> seconds;
    for (unsigned i = 0; i < options.repeats; ++i)
      seconds.push_back(seconds_of(made, ops, virtual_seconds));
    const double took = median(seconds);
    last = took / static_cast<double>(ops);
    if (first == 0) first = last;
    table.add({std::to_string(ops), apps::format_seconds(took),
               std::to_string(static_cast<long long>(static_cast<double>(ops) / took)),
               std::to_string(static_cast<long long>(1e9 * last)),
               apps::format_seconds(virtual_seconds)});
    results.push_back({{"ops", ops},
                       {"seconds", took},
                       {"ops_per_second", static_cast<double>(ops) / took},
                       {"virtual_seconds", virtual_seconds}});
  }
  output.print("\n%s\n", table.text().c_str());
  output.print("cost of an op, most ops against fewest: %.2f x\n", last / first);
  output.write_json(nlohmann::ordered_json{
      {"machine", made.machine->source}, {"results", results}, {"most_to_fewest", last / first}}
                        .dump(2));
  return 0;
}

}  // namespace weft::bench
