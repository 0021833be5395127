#include "apps/topo/measure_host.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "topology/describe.hpp"
#include "topology/node_buffer.hpp"
#include "topology/quantity.hpp"

namespace weft {
namespace {

constexpr std::size_t kBytesPerThread = std::size_t{64} << 20;  // beyond every cache share
constexpr int kRepeats = 5;
constexpr unsigned kMostThreads = 32;  // saturates the memory controllers of a socket

void pin_to(std::uint32_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

std::uint64_t read_all(const NodeBuffer& buffer) {
  std::uint64_t sums[8] = {};
  const std::uint64_t* words = buffer.words();
  for (std::size_t i = 0; i + 8 <= buffer.count(); i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += words[i + lane];
  return std::accumulate(sums, sums + 8, std::uint64_t{0});
}

/// One thread per core of a socket that read or write memory of one node.
double traffic(const Socket& socket, const Memory& memory, bool write) {
  const unsigned count =
      std::min<unsigned>(kMostThreads, static_cast<unsigned>(socket.cores.size()));
  std::atomic<unsigned> ready{0};
  std::atomic<bool> go{false};
  std::atomic<std::uint64_t> sink{0};
  std::vector<std::vector<double>> seconds(count);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      pin_to(socket.cores[t].pus.front());
      const NodeBuffer buffer(memory, kBytesPerThread);
      ++ready;
      while (!go) std::this_thread::yield();
      for (int repeat = 0; repeat < kRepeats; ++repeat) {
        const auto begin = std::chrono::steady_clock::now();
        if (write)
          std::memset(buffer.words(), repeat, kBytesPerThread);
        else
          sink += read_all(buffer);
        seconds[t].push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
    });
  while (ready < count) std::this_thread::yield();
  go = true;
  for (std::thread& thread : threads) thread.join();
  // Each thread's median, together.
  double rate = 0;
  for (std::vector<double>& times : seconds) {
    std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
    rate += static_cast<double>(kBytesPerThread) / times[kRepeats / 2];
  }
  return rate;
}

/// Time of one dependent access by a chain through 64 MiB in random order.
std::chrono::nanoseconds latency(const Socket& socket, const Memory& memory) {
  std::chrono::nanoseconds result{0};
  std::thread([&] {
    pin_to(socket.cores.front().pus.front());
    const NodeBuffer buffer(memory, kBytesPerThread);
    constexpr std::size_t kStride = 8;  // a cache line of words
    const std::size_t lines = buffer.count() / kStride;
    std::vector<std::uint32_t> order(lines);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (std::size_t i = 0; i < lines; ++i)
      buffer.words()[order[i] * kStride] = order[(i + 1) % lines] * kStride;
    constexpr std::size_t kSteps = 1'000'000;
    std::uint64_t at = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t step = 0; step < kSteps; ++step) at = buffer.words()[at];
    const auto time = std::chrono::steady_clock::now() - begin;
    static std::atomic<std::uint64_t> sink;
    sink = at;
    result = std::chrono::duration_cast<std::chrono::nanoseconds>(time) / static_cast<int>(kSteps);
  }).join();
  return result;
}

/// Traffic between a socket and a memory, as one link's figures need it.
struct Flow {
  const Socket* socket = nullptr;
  const Memory* memory = nullptr;
  [[nodiscard]] bool is_possible() const { return socket && memory; }
};

class HostMeter {
 public:
  explicit HostMeter(const Machine& machine) : m_(machine) {}

  /// Reads and writes that load a link in its direction `a` to `b`, and back; both the same for a
  /// memory bus.
  [[nodiscard]] std::array<Flow, 2> flows(const Link& link) const {
    if (link.kind == LinkKind::Bus && link.a.kind == NodeKind::Memory &&
        link.b.kind == NodeKind::Socket) {
      const Flow flow{&m_.sockets[link.b.index], &m_.memories[link.a.index]};
      return {flow, flow};
    }
    if (link.kind != LinkKind::Socket || link.a.kind != NodeKind::Socket ||
        link.b.kind != NodeKind::Socket)
      return {};
    // Data cross from a to b where b reads a's memory.
    const Socket& a = m_.sockets[link.a.index];
    const Socket& b = m_.sockets[link.b.index];
    if (a.memories.empty() || b.memories.empty()) return {};
    return {Flow{&b, &m_.memories[a.memories.front().value]},
            Flow{&a, &m_.memories[b.memories.front().value]}};
  }

  std::optional<LinkFigures> measure(const Link& link) const {
    const std::array<Flow, 2> own = flows(link);
    if (!own[0].is_possible()) return std::nullopt;
    LinkFigures figures;
    const bool is_bus = link.kind == LinkKind::Bus;
    for (const std::size_t i : {0u, 1u}) figures.alone[i] = run(own[i], is_bus && i == 1);
    figures.latency = latency(*own[0].socket, *own[0].memory);
    // Neighbours: what else the same sockets and memories can do at that time.
    std::vector<Flow> others;
    for (const Link& other : m_.links) {
      if (&other == &link) continue;
      const bool touches =
          other.a == link.a || other.a == link.b || other.b == link.a || other.b == link.b;
      const Flow flow = flows(other)[0];
      if (touches && flow.is_possible() && others.size() < 8) others.push_back(flow);
    }
    if (others.empty()) {
      figures.busy = figures.alone;
      return figures;
    }
    for (const std::size_t i : {0u, 1u}) {
      std::atomic<bool> stop{false};
      std::vector<std::thread> background;
      for (const Flow& flow : others)
        background.emplace_back([&stop, flow] {
          while (!stop) traffic(*flow.socket, *flow.memory, false);
        });
      figures.busy[i] = run(own[i], is_bus && i == 1);
      stop = true;
      for (std::thread& thread : background) thread.join();
    }
    return figures;
  }

 private:
  static double run(const Flow& flow, bool write) {
    return traffic(*flow.socket, *flow.memory, write);
  }

  const Machine& m_;
};

}  // namespace

Measurements measure_links(const Machine& machine, const TopoHooks& hooks,
                           const std::function<void(const std::string&)>& progress) {
  Measurements result;
  result.fingerprint = fingerprint(machine);
  const HostMeter meter(machine);
  for (std::uint32_t i = 0; i < machine.links.size(); ++i) {
    const Link& link = machine.links[i];
    std::optional<LinkFigures> figures = meter.measure(link);
    if (!figures && hooks.measure_link) figures = hooks.measure_link(machine, LinkId{i});
    const std::string name = std::string(describe(link).substr(0, describe(link).find(' '))) + " " +
                             to_string(link.a) + "-" + to_string(link.b);
    if (!figures) {
      progress(name + ": not measured, no engine reaches both its ends");
      continue;
    }
    progress(name + ": " + format_rate(figures->alone[0]) + " there, " +
             format_rate(figures->alone[1]) + " back; " + format_rate(figures->busy[0]) + " and " +
             format_rate(figures->busy[1]) + " with neighbours busy; " +
             std::to_string(figures->latency.count()) + " ns");
    result.links.push_back({link.kind, link.a, link.b, *figures});
  }
  return result;
}

}  // namespace weft
