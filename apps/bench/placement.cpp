#include "apps/bench/placement.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

#include "actors/runtime.hpp"
#include "apps/bench/statistics.hpp"
#include "apps/common/output.hpp"
#include "apps/common/table.hpp"
#include "topology/discover.hpp"

namespace weft::bench {
namespace {

const auto kPlacedStep =
    Kernel("placed_step")
        .cpu([](Cpu&, In<float>, In<float>, InOut<float>) {})
        .cost([](In<float> x, In<float>, InOut<float>) {
          return Cost{1e3 * static_cast<double>(x.size()), 16.0 * static_cast<double>(x.size())};
        });

// Works out when the op would end on each device, and takes the next: the same devices as by name,
// hence the same copies, and the cost of the decision alone.
class EstimatedTurns final : public PlacementPolicy {
 public:
  [[nodiscard]] std::string name() const override { return "in turn, all times worked out"; }
  std::size_t choose(std::span<const PlacementOption> options) override {
    (void)earliest_.choose(options);
    return turns_.choose(options);
  }

 private:
  EarliestFinishPlacement earliest_;
  RoundRobinPlacement turns_;
};

// Nanoseconds of the submitting thread an op; nothing runs before it waits. Without a policy, the
// devices take turns by name.
double ns_per_submission(const Runtime& rt, PlacementPolicy* policy, std::size_t ops) {
  constexpr std::size_t kTensors = 64;
  std::vector<Device> devices = rt.devices();
  std::vector<Tensor<float>> data;
  for (std::size_t i = 0; i < kTensors; ++i)
    data.push_back(rt.zeros({64, 64}, devices[i % devices.size()]));
  rt.wait_idle();
  if (policy) devices = {Device(rt.fabric(), devices.front().place(), *policy)};
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < ops; ++i)
    devices[i % devices.size()].submit(kPlacedStep, in(data[i % kTensors]),
                                       in(data[(i * 7 + 1) % kTensors]),
                                       inout(data[(i * 5 + 2) % kTensors]));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  rt.wait_idle();
  return 1e9 * took.count() / static_cast<double>(ops);
}

}  // namespace

int run_placement(const PlacementOptions& options, apps::Output& output) {
  RuntimeOptions made = apps::to_runtime_options(options.common, false);
  made.simulate = true;
  made.data = SimulatedData::None;
  made.admission = static_cast<std::int64_t>(2 * options.ops);
  if (!made.machine) made.machine = parse_machine("2 sockets x 8 cores, 8 gpus, nvlink");
  const std::string machine = made.machine->source;
  const Runtime rt(std::move(made));
  (void)rt.anywhere();  // from now on runs are looked at
  std::vector<std::unique_ptr<PlacementPolicy>> policies;
  policies.push_back(std::make_unique<EstimatedTurns>());
  for (const std::string& name : options.policies) policies.push_back(make_placement(name));

  std::vector<std::vector<double>> rounds(policies.size() + 1);
  for (unsigned r = 0; r < options.repeats; ++r) {
    rounds[0].push_back(ns_per_submission(rt, nullptr, options.ops));
    for (std::size_t p = 0; p < policies.size(); ++p)
      rounds[p + 1].push_back(ns_per_submission(rt, policies[p].get(), options.ops));
  }
  output.print("a submission with three tensors on %s, %zu devices; median of %u rounds\n",
               machine.c_str(), rt.devices().size(), options.repeats);
  const double named = median(rounds[0]);
  apps::Table table({"placement", "ns/op", "more than by name"});
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  auto add = [&](const std::string& name, double ns) {
    table.add({name, std::to_string(static_cast<long long>(ns)),
               std::to_string(static_cast<long long>(ns - named))});
    results.push_back({{"placement", name}, {"ns_per_op", ns}, {"more_ns", ns - named}});
  };
  add("devices in turn, by name", named);
  for (std::size_t p = 0; p < policies.size(); ++p) add(policies[p]->name(), median(rounds[p + 1]));
  output.print("\n%s", table.text().c_str());
  output.print("policies choose other devices than in turn, so other copies are submitted too\n");
  output.write_json(nlohmann::ordered_json{
      {"machine", machine}, {"devices", rt.devices().size()}, {"results", results}}
                        .dump(2));
  return 0;
}

}  // namespace weft::bench
