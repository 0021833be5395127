// Collectives by tree and by star in virtual time, against what their plans take on paper.
#include <algorithm>
#include <cmath>

#include "actors/collective.hpp"
#include "actors/simulated_options.hpp"
#include "support/catch.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const auto kFillAtOnce =
    Kernel("fill_at_once")
        .cpu([](Cpu&, float value, Out<float> x) { std::fill(x.begin(), x.end(), value); })
        .cost([](float, Out<float>) {
          return Cost{0, 0};
        });

constexpr std::int64_t kMemberElements = 80 << 20;
constexpr double kMemberBytes = 4.0 * kMemberElements;
// S / B: all of one member's data over one NVLink of 50 GB/s, 0.9 of which is assumed to be
// payload.
constexpr double kTransfer = kMemberBytes / (0.9 * 50e9);
// Of a link: enough that a latency more or less is more than the tests allow.
constexpr std::chrono::milliseconds kLinkLatency{2};

// Every two GPUs have an NVLink of their own.
Machine with_pairs(std::uint32_t gpus) {
  Machine machine = parse_machine("1 socket x 4 cores, " + std::to_string(gpus) +
                                  " gpus, nvlink 50 GB/s, gpu memory 80 GB");
  for (Link& link : machine.links)
    if (link.kind == LinkKind::Nvlink) link.latency = kLinkLatency;
  return machine;
}

// Each GPU has one NVLink, to a switch that all others are on.
Machine with_port(std::uint32_t gpus) {
  Machine machine = with_pairs(gpus);
  const auto is_nvlink = [](const Link& link) { return link.kind == LinkKind::Nvlink; };
  Link port = *std::find_if(machine.links.begin(), machine.links.end(), is_nvlink);
  std::erase_if(machine.links, is_nvlink);
  const HubId hub{static_cast<std::uint32_t>(machine.hubs.size())};
  machine.hubs.push_back({HubKind::NvSwitch, "switch", machine.gpus[0].near, 0});
  for (std::uint32_t g = 0; g < gpus; ++g) {
    port.a = GpuId{g};
    port.b = hub;
    machine.links.push_back(port);
  }
  return machine;
}

// From one GPU to another, in seconds: a link, or one to the switch and one from it.
double latency_of(const Machine& machine) {
  const bool is_switched =
      std::any_of(machine.hubs.begin(), machine.hubs.end(),
                  [](const Hub& hub) { return hub.kind == HubKind::NvSwitch; });
  return (is_switched ? 2 : 1) * std::chrono::duration<double>(kLinkLatency).count();
}

double all_reduce_seconds(const Machine& machine, CollectiveAlgorithm algorithm) {
  RuntimeOptions options = simulated("1 socket x 4 cores, 1 gpu");
  options.machine = machine;
  options.data = SimulatedData::None;
  options.relay = false;
  options.emulated->flops_per_second = 1e18;  // sums take no time, copies all of it
  options.emulated->memory_bytes_per_second = 1e18;
  Runtime rt(options);
  std::vector<Device> gpus;
  std::vector<Tensor<float>> x;
  for (std::size_t g = 0; g < machine.gpus.size(); ++g) {
    gpus.push_back(rt.gpu(g));
    x.push_back(rt.gpu(g).tensor<float>({kMemberElements}));
    rt.gpu(g).submit(kFillAtOnce, 1.0f, out(x.back()));
  }
  auto group = rt.collective(gpus);
  group.set_algorithm(algorithm);
  rt.wait_idle();
  const auto start = rt.now();
  group.all_reduce(x);
  rt.wait_idle();
  return 1e-9 * static_cast<double>((rt.now() - start).count());
}

}  // namespace

TEST_CASE("all-reduce by tree takes 2 log2 n transfers of all data, and as many latencies",
          "[actors][simulated]") {
  // A binomial tree: level by level half of those that still have a sum send it to the other half,
  // then the same back. Each of its 2 log2 n steps is S / B + latency.
  for (const std::uint32_t n : {4u, 8u, 16u})
    for (const Machine& machine : {with_pairs(n), with_port(n)}) {
      const double steps = 2 * std::log2(n);
      INFO(n << " GPUs, " << machine.hubs.size() << " hubs");
      CHECK(all_reduce_seconds(machine, CollectiveAlgorithm::Tree) ==
            Approx(steps * (kTransfer + latency_of(machine))).epsilon(0.01));
    }
}

TEST_CASE("all-reduce by tree of two is one exchange", "[actors][simulated]") {
  // Both directions of a link at once: S / B + latency.
  for (const Machine& machine : {with_pairs(2), with_port(2)})
    CHECK(all_reduce_seconds(machine, CollectiveAlgorithm::Tree) ==
          Approx(kTransfer + latency_of(machine)).epsilon(0.01));
}

TEST_CASE("all-reduce by tree of members that are no power of two waits for its deepest branch",
          "[actors][simulated]") {
  // Member i is as many hops from the root as its number has ones. Where each pair has a link, what
  // the root gets from its children comes at once: 2 · most ones below n steps. With one port it
  // comes in turn, as what leaves the root does: 2 ⌈log2 n⌉ transfers, but the root's children send
  // without waiting for each other, so latencies overlap where transfers do not.
  struct Expected {
    std::uint32_t n;
    double pairs, port, port_latencies;
  };
  for (const Expected& expected : {Expected{3, 2, 4, 3}, Expected{5, 4, 6, 4}}) {
    INFO(expected.n << " GPUs");
    const Machine pairs = with_pairs(expected.n), port = with_port(expected.n);
    CHECK(all_reduce_seconds(pairs, CollectiveAlgorithm::Tree) ==
          Approx(expected.pairs * (kTransfer + latency_of(pairs))).epsilon(0.01));
    CHECK(all_reduce_seconds(port, CollectiveAlgorithm::Tree) ==
          Approx(expected.port * kTransfer + expected.port_latencies * latency_of(port))
              .epsilon(0.01));
  }
}

TEST_CASE("all-reduce by star takes 2 (n-1) transfers of all data where the root has one port",
          "[actors][simulated]") {
  // In: n-1 members send at once and share the root's port, (n-1) S / B + latency. Out: the root's
  // link takes its copies one after the other, (n-1) (S / B + latency).
  for (const std::uint32_t n : {2u, 3u, 5u, 8u, 16u}) {
    INFO(n << " GPUs");
    const Machine machine = with_port(n);
    CHECK(all_reduce_seconds(machine, CollectiveAlgorithm::Star) ==
          Approx(2.0 * (n - 1) * kTransfer + n * latency_of(machine)).epsilon(0.01));
  }
}

TEST_CASE("all-reduce by star is two steps where each pair has a link", "[actors][simulated]") {
  // All to the root at once, all back at once: 2 (S / B + latency), whatever n is.
  for (const std::uint32_t n : {2u, 3u, 8u, 16u}) {
    INFO(n << " GPUs");
    const Machine machine = with_pairs(n);
    CHECK(all_reduce_seconds(machine, CollectiveAlgorithm::Star) ==
          Approx(2 * (kTransfer + latency_of(machine))).epsilon(0.01));
  }
}
