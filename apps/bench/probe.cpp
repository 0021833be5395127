#include "apps/bench/probe.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "apps/bench/cores.hpp"
#include "apps/bench/executor.hpp"
#include "apps/bench/statistics.hpp"
#include "apps/bench/work.hpp"

namespace weft::bench {
namespace {

constexpr int kHops = 20'000;
constexpr int kWakes = 200;
constexpr std::uint64_t kProbeIterations = 4'000'000;

struct alignas(128) Line {
  std::atomic<int> value{0};
};

// Runs `other` on the second core and `mine` on the first.
template <class Mine, class Other>
double on_two_cores(const Mine& mine, const Other& other) {
  unpin();
  std::atomic<bool> there{false};
  std::thread thread([&] {
    pin_to(core_cpus()[1]);
    there = true;
    other();
  });
  while (!there) std::this_thread::yield();
  pin_to(core_cpus()[0]);
  const Stopwatch watch;
  mine();
  const double seconds = watch.seconds();
  thread.join();
  unpin();
  return seconds;
}

double hop_ns() {
  Line there, back;
  return on_two_cores(
             [&] {
               for (int i = 1; i <= kHops; ++i) {
                 there.value.store(i, std::memory_order_release);
                 while (back.value.load(std::memory_order_acquire) != i) {
                 }
               }
             },
             [&] {
               for (int i = 1; i <= kHops; ++i) {
                 while (there.value.load(std::memory_order_acquire) != i) {
                 }
                 back.value.store(i, std::memory_order_release);
               }
             }) *
         1e9 / (2 * kHops);
}

double wake_ns() {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  const auto side = [&](int me) {
    for (int i = 0; i < kWakes; ++i) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return turn == me; });
      turn = 1 - me;
      lock.unlock();
      changed.notify_one();
    }
  };
  return on_two_cores([&] { side(0); }, [&] { side(1); }) * 1e9 / (2 * kWakes);
}

double kernel_seconds() {
  const Stopwatch watch;
  volatile double sink = multiply_adds(kProbeIterations, 1.0);
  (void)sink;
  return watch.seconds();
}

}  // namespace

double probe_both_cores() {
  if (core_cpus().size() < 2) return 1;
  double alone = 1e9, both = 1e9;
  for (int i = 0; i < 2; ++i) {
    double other = 0, mine = 0;
    pin_to(core_cpus()[0]);
    alone = std::min(alone, kernel_seconds());
    on_two_cores([&] { mine = kernel_seconds(); }, [&] { other = kernel_seconds(); });
    both = std::min(both, std::max(mine, other));
  }
  unpin();
  return both / alone;
}

HostProbe probe_host() {
  HostProbe probe;
  if (core_cpus().size() < 2) return probe;
  std::vector<double> hops, wakes;
  for (int i = 0; i < 5; ++i) {
    hops.push_back(hop_ns());
    wakes.push_back(wake_ns());
  }
  probe.hop_ns = median(hops);
  probe.wake_ns = median(wakes);
  probe.both_ratio = probe_both_cores();
  return probe;
}

}  // namespace weft::bench
