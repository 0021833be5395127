// A parameter server (Li et al., "Scaling distributed machine learning with the parameter server",
// OSDI 2014), synchronous: the first device keeps the weights, the others pull them, compute a
// gradient each and push it; the server applies them one by one.
#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"

namespace weft::workloads {
namespace {

constexpr float kRate = 0.25f;

// The gradient of half the squared distance to a worker's own goal, computed `repeat` times over as
// a model's would take longer.
const auto& gradient() {
  static const auto kernel =
      Kernel("gradient")
          .cpu([](Cpu& cpu, std::int64_t repeat, In<float> weights, In<float> goal,
                  Out<float> gradient) {
            cpu.parallel_for(gradient.size(), [&](std::size_t i) {
              float sum = 0;
              for (std::int64_t r = 0; r < repeat; ++r) sum += weights[i] - goal[i];
              gradient[i] = sum / static_cast<float>(repeat);
            });
          })
          .cost([](std::int64_t repeat, In<float> weights, In<float>, Out<float>) {
            return Cost{
                (2.0 * static_cast<double>(repeat) + 1) * static_cast<double>(weights.size()),
                12.0 * static_cast<double>(weights.size())};
          });
  return kernel;
}

const auto& apply() {
  static const auto kernel =
      Kernel("apply")
          .cpu([](Cpu& cpu, float rate, In<float> gradient, InOut<float> weights) {
            cpu.parallel_for(weights.size(),
                             [&](std::size_t i) { weights[i] -= rate * gradient[i]; });
          })
          .cost([](float, In<float> gradient, InOut<float>) {
            return Cost{2.0 * static_cast<double>(gradient.size()),
                        12.0 * static_cast<double>(gradient.size())};
          });
  return kernel;
}

// Steps of the same recurrence in double precision; values stay within [-1, 1].
void check(const HostArray<float>& weights, std::int64_t rounds, std::size_t workers) {
  const double rate = static_cast<double>(kRate) / static_cast<double>(workers);
  const double bound = 1e-6 * static_cast<double>(rounds) * static_cast<double>(workers + 1);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double value = 0;
    for (std::int64_t r = 0; r < rounds; ++r) {
      const double pulled = value;
      for (std::size_t w = 0; w < workers; ++w)
        value -= rate * (pulled - static_cast<double>(random_element(w, i)));
    }
    expect_near("weights", i, static_cast<double>(weights[i]), value, bound);
  }
}

Result run(const Context& context) {
  const std::int64_t elements = context.values.number("elements");
  const std::int64_t rounds = context.values.number("rounds");
  const std::int64_t repeat = context.values.number("repeat");
  const Device& server = context.devices.front();
  std::vector<Device> workers(context.devices.begin() + 1, context.devices.end());
  if (workers.empty()) workers.push_back(server);
  std::vector<Tensor<float>> goals;
  for (std::size_t w = 0; w < workers.size(); ++w) {
    std::vector<float> goal;
    for (std::int64_t i = 0; i < elements; ++i)
      goal.push_back(random_element(w, static_cast<std::uint64_t>(i)));
    goals.push_back(context.runtime.from_host(goal, {elements}));
  }
  const auto weights = context.runtime.zeros({elements}, server);

  Counted ops;
  Result result;
  result.seconds = timed(context.runtime, [&] {
    const float rate = kRate / static_cast<float>(workers.size());
    for (std::int64_t r = 0; r < rounds; ++r) {
      std::vector<Tensor<float>> pushed;
      for (std::size_t w = 0; w < workers.size(); ++w) {
        pushed.push_back(workers[w].tensor<float>({elements}));
        ops.submit(workers[w], gradient(), repeat, in(weights), in(goals[w]), out(pushed[w]));
      }
      for (const auto& each : pushed) ops.submit(server, apply(), rate, in(each), inout(weights));
    }
    weights.future().wait();
  });
  const double calls = static_cast<double>(rounds) * static_cast<double>(workers.size());
  const auto size = static_cast<double>(elements);
  result.flops = calls * size * (2.0 * static_cast<double>(repeat) + 3);
  result.bytes = context.devices.size() > 1 ? 8 * size * calls : 0;
  result.ops = ops.ops();
  result.check = checked(context.runtime, "the weights against serial steps in double precision",
                         [&] { check(weights.to_host(), rounds, workers.size()); });
  return result;
}

}  // namespace

Workload parameter_server_workload() {
  return {"parameter-server",
          "the first device keeps weights, the others pull them and push gradients",
          {number("elements", 1 << 14, 1, 1 << 28, "fp32 weights"),
           number("rounds", 8, 1, 1'000'000, "pulls and pushes of each worker"),
           number("repeat", 16, 1, 1'000'000, "how much work a gradient is")},
          {gradient().code(), apply().code()},
          run};
}

}  // namespace weft::workloads
