#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "actors/collective.hpp"
#include "actors/runtime.hpp"
#include "framework/trace.hpp"
#include "framework/trace_chrome.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"
#include "topology/discover.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// Takes as many seconds of a device with 1e12 flop/s as `seconds` says.
const auto kWork = Kernel("work")
                       .cpu([](Cpu&, double, InOut<float> x) { x[0] += 1; })
                       .cost([](double seconds, InOut<float>) {
                         return Cost{1e12 * seconds, 0};
                       });
const auto kSet =
    Kernel("set")
        .cpu([](Cpu&, float value, Out<float> x) { std::fill(x.begin(), x.end(), value); })
        .cost([](float, Out<float>) {
          return Cost{0, 0};
        });

RuntimeOptions simulated(Machine machine, SimulatedData data = SimulatedData::Real) {
  RuntimeOptions options;
  options.machine = std::move(machine);
  options.simulate = true;
  options.data = data;
  options.emulated = EmulatedOptions{};
  options.emulated->flops_per_second = 1e12;
  options.emulated->memory_bytes_per_second = 1e15;  // sums and fills take no time
  options.emulated->compute_lanes = 1;
  options.emulated->poison = false;
  options.serial = false;
  options.relay = false;
  return options;
}

RuntimeOptions simulated(const std::string& machine, SimulatedData data = SimulatedData::Real) {
  return simulated(parse_machine(machine), data);
}

double seconds(const Runtime& rt) {
  return 1e-9 * static_cast<double>(rt.now().count());
}

void fetch(const Tensor<float>& x) {
  static_cast<void>(x.to_host());
}

// From now until all is done.
template <class Submit>
double time_of(const Runtime& rt, Submit submit) {
  rt.wait_idle();
  const double start = seconds(rt);
  submit();
  rt.wait_idle();
  return seconds(rt) - start;
}

const Link& pcie_of(const Machine& machine, std::uint32_t gpu) {
  return *std::find_if(machine.links.begin(), machine.links.end(), [&](const Link& link) {
    return link.kind == LinkKind::Pcie &&
           (link.a == Node(GpuId{gpu}) || link.b == Node(GpuId{gpu}));
  });
}

// Both GPUs under one switch, whose uplink is as fast as each of their links.
Machine with_switch() {
  Machine machine = parse_machine("1 socket x 4 cores, 2 gpus, pcie 20 GB/s, memory 400 GB");
  const HubId hub{static_cast<std::uint32_t>(machine.hubs.size())};
  machine.hubs.push_back({HubKind::PcieSwitch, "switch", machine.gpus[0].near, 0});
  Node up = SocketId{0};
  for (Link& link : machine.links)
    if (link.kind == LinkKind::Pcie) {
      up = link.a.kind == NodeKind::Gpu ? link.b : link.a;
      (link.a.kind == NodeKind::Gpu ? link.b : link.a) = hub;
    }
  Link uplink = pcie_of(machine, 0);
  uplink.a = up;
  uplink.b = hub;
  machine.links.push_back(uplink);
  return machine;
}

constexpr std::int64_t kElements = 10 << 20;
constexpr double kBytes = 4.0 * kElements;

}  // namespace

TEST_CASE("one copy takes its bytes over the slowest link, and the latencies",
          "[actors][simulated]") {
  Runtime rt(simulated("1 socket x 4 cores, 1 gpu, pcie 20 GB/s", SimulatedData::None));
  auto x = rt.gpu(0).tensor<float>({kElements});
  rt.gpu(0).submit(kSet, 1.0f, out(x));
  const double took = time_of(rt, [&] { fetch(x); });
  CHECK(took == Approx(kBytes / 20e9).epsilon(0.01));
  CHECK(took > kBytes / 20e9);
}

TEST_CASE("two copies share an uplink, and both directions do not", "[actors][simulated]") {
  Runtime rt(simulated(with_switch(), SimulatedData::None));
  std::vector<Tensor<float>> x, y;
  for (std::size_t g = 0; g < 2; ++g) {
    x.push_back(rt.gpu(g).tensor<float>({kElements}));
    rt.gpu(g).submit(kSet, 1.0f, out(x[g]));
    y.push_back(rt.socket(0).tensor<float>({kElements}));
    rt.socket(0).submit(kSet, 1.0f, out(y[g]));
  }
  const double alone = kBytes / 20e9;
  CHECK(time_of(rt, [&] { fetch(x[0]); }) == Approx(alone).epsilon(0.01));
  CHECK(time_of(rt, [&] {
          rt.gpu(0).submit(kWork, 0.0, inout(x[0]));
          rt.gpu(1).submit(kWork, 0.0, inout(x[1]));
          fetch(x[0]);
          fetch(x[1]);
        }) == Approx(2 * alone).epsilon(0.01));
  // Up from one GPU, down to the other.
  CHECK(time_of(rt, [&] {
          rt.gpu(0).submit(kWork, 0.0, inout(x[0]));
          fetch(x[0]);
          rt.gpu(1).submit(kWork, 0.0, inout(y[1]));
        }) == Approx(alone).epsilon(0.01));
}

TEST_CASE("kernels overlap with copies", "[actors][simulated]") {
  Runtime rt(simulated("1 socket x 4 cores, 1 gpu, pcie 20 GB/s", SimulatedData::None));
  constexpr int kCount = 10;
  std::vector<Tensor<float>> x;
  for (int i = 0; i < kCount; ++i) {
    x.push_back(rt.gpu(0).tensor<float>({kElements}));
    rt.gpu(0).submit(kSet, 1.0f, out(x.back()));
  }
  const double copy = kBytes / 20e9;
  for (double kernel : {0.5 * copy, copy, 2 * copy}) {
    const double took = time_of(rt, [&] {
      for (auto& tensor : x) {
        rt.gpu(0).submit(kWork, kernel, inout(tensor));
        fetch(tensor);
      }
    });
    CHECK(took == Approx(kCount * std::max(kernel, copy) + std::min(kernel, copy)).epsilon(0.01));
  }
}

TEST_CASE("two lanes of one GPU share it, two GPUs do not", "[actors][simulated]") {
  auto options = simulated("1 socket x 4 cores, 2 gpus", SimulatedData::None);
  options.emulated->compute_lanes = 2;
  Runtime rt(options);
  auto fork_join = [&](std::size_t gpus) {
    std::vector<Tensor<float>> x;
    for (int i = 0; i < 4; ++i) x.push_back(rt.gpu(0).tensor<float>({1}));
    return time_of(rt, [&] {
      for (std::size_t i = 0; i < 4; ++i) rt.gpu(i % gpus).submit(kSet, 0.0f, out(x[i]));
      for (std::size_t i = 0; i < 4; ++i) rt.gpu(i % gpus).submit(kWork, 1e-3, inout(x[i]));
      for (std::size_t i = 1; i < 4; ++i)
        rt.gpu(0).submit(kWork, 1e-3, inout(x[i]), after(x[0].future()));
    });
  };
  CHECK(fork_join(1) == Approx(7e-3).epsilon(0.01));
  CHECK(fork_join(2) == Approx(5e-3).epsilon(0.01));
}

TEST_CASE("a copy through the host is a pipeline of chunks", "[actors][simulated]") {
  auto options = simulated("1 socket x 4 cores, 2 gpus, pcie 20 GB/s", SimulatedData::None);
  options.p2p = false;
  Runtime rt(options);
  auto x = rt.gpu(0).tensor<float>({8 * kElements});
  rt.gpu(0).submit(kSet, 1.0f, out(x));
  std::size_t chunks = 0;
  const double took = time_of(rt, [&] { rt.gpu(1).submit(kWork, 0.0, inout(x)); });
  // The chunk's size is the runtime's own affair: it follows from how much longer than one hop.
  chunks = static_cast<std::size_t>(std::llround(1 / (took / (8 * kBytes / 20e9) - 1)));
  CHECK(chunks >= 8);
  CHECK(took == Approx(8 * kBytes / 20e9 * (1 + 1.0 / static_cast<double>(chunks))).epsilon(0.01));
}

TEST_CASE("all-reduce by ring takes 2 (n-1) / n of the data and as many latencies",
          "[actors][simulated]") {
  for (std::uint32_t n : {2u, 4u, 8u}) {
    Runtime rt(simulated("1 socket x 4 cores, " + std::to_string(n) + " gpus, nvlink 50 GB/s",
                         SimulatedData::None));
    std::vector<Device> gpus;
    std::vector<Tensor<float>> x;
    for (std::size_t g = 0; g < n; ++g) {
      gpus.push_back(rt.gpu(g));
      x.push_back(rt.gpu(g).tensor<float>({8 * kElements}));
      rt.gpu(g).submit(kSet, 1.0f, out(x.back()));
    }
    auto group = rt.collective(gpus);
    group.set_algorithm(CollectiveAlgorithm::Ring);
    double latency = 0;
    for (const Link& link : rt.machine().links)
      if (link.kind == LinkKind::Nvlink) latency = 1e-9 * static_cast<double>(link.latency.count());
    const double took = time_of(rt, [&] { group.all_reduce(x); });
    const double steps = 2.0 * (n - 1), rate = 0.9 * 50e9;  // payload of an assumed NVLink
    CHECK(took == Approx(steps * (8 * kBytes / n / rate + latency)).epsilon(0.01));
  }
}

TEST_CASE("a simulated run gives the results of an emulated one, in the same virtual time twice",
          "[actors][simulated]") {
  auto run = [](bool simulate) {
    auto options = simulated("2 sockets x 3 cores, 2 gpus");
    options.simulate = simulate;
    options.emulated->flops_per_second = simulate ? 1e12 : 0;
    options.emulated->memory_bytes_per_second = simulate ? 1e12 : 0;
    options.trace = true;
    options.watchdog = std::chrono::seconds(60);
    Runtime rt(options);
    auto a = rt.uniform({70, 90}, rt.gpu(0), 1), b = rt.uniform({90, 50}, rt.gpu(1), 2);
    std::vector<HostArray<float>> results;
    for (std::size_t i = 0; i < 6; ++i) {
      const Device device = i % 3 == 2 ? rt.socket(i % 2) : rt.gpu(i % 2);
      results.push_back(device.matmul(a, b).to_host());
    }
    rt.wait_idle();
    std::ostringstream trace;
    write_chrome_trace(rt.tracer()->collect(), trace);
    std::vector<float> values;
    for (auto& result : results)
      values.insert(values.end(), result.span().begin(), result.span().end());
    return std::pair(values, std::pair(trace.str(), rt.now()));
  };
  const auto emulated = run(false), first = run(true), second = run(true);
  CHECK(first.first == emulated.first);
  CHECK(first.first == second.first);
  CHECK(first.second == second.second);
}

TEST_CASE("a wait for what can never happen ends with who waits for whom", "[actors][simulated]") {
  Runtime rt(simulated("1 socket x 2 cores, 1 gpu"));
  auto x = rt.tensor<float>({4});
  Promise never("the missing message");
  const Future future = rt.gpu(0).submit(kSet, 1.0f, out(x), after(never.future()));
  const std::string said = thrown<UsageError>([&] { future.wait(); });
  CHECK(has(said, "nothing can happen any more"));
  CHECK(has(said, "the missing message"));
  never.fulfil();
  future.wait();
  CHECK(x.to_host()[3] == 1);
}

TEST_CASE("virtual time passes for loops that ask and for waits with a limit",
          "[actors][simulated]") {
  Runtime rt(simulated("1 socket x 2 cores, 1 gpu"));
  auto x = rt.tensor<float>({1});
  rt.gpu(0).submit(kSet, 0.0f, out(x)).wait();
  const Future future = rt.gpu(0).submit(kWork, 1e-3, inout(x));
  const double start = seconds(rt);
  CHECK_FALSE(future.wait_for(std::chrono::microseconds(400)));
  CHECK(seconds(rt) - start == Approx(400e-6).epsilon(0.01));
  while (!future.is_settled()) {
  }
  CHECK(seconds(rt) - start == Approx(1e-3).epsilon(0.05));
}

TEST_CASE("without data nothing is computed, and large tensors cost nothing",
          "[actors][simulated]") {
  auto options =
      simulated("1 socket x 2 cores, 4 gpus, nvlink, gpu memory 80 GB", SimulatedData::None);
  Runtime rt(options);
  CHECK_FALSE(rt.has_data());
  std::vector<Tensor<float>> x;
  for (std::size_t g = 0; g < 4; ++g) {
    x.push_back(rt.gpu(g).tensor<float>({15LL << 30}));  // 60 GiB each
    rt.gpu(g).submit(kSet, 7.0f, out(x.back()));
  }
  auto sum = rt.gpu(0).tensor<float>({10});
  rt.gpu(0).submit(kSet, 7.0f, out(sum));
  CHECK(sum.to_host()[3] == 0);
  const std::string said = thrown<OpError>([&] {
    auto more = rt.gpu(0).tensor<float>({15LL << 30});
    rt.gpu(0).submit(kSet, 7.0f, out(more)).wait();
  });
  CHECK(has(said, "mem"));  // it does not fit, as on the real one
}
