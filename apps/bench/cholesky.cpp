#include "apps/bench/cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "apps/bench/cholesky_order.hpp"
#include "apps/bench/cholesky_peer.hpp"
#include "apps/bench/device_stopwatch.hpp"
#include "apps/bench/tiled_cholesky.hpp"
#include "apps/common/output.hpp"
#include "apps/common/table.hpp"
#include "apps/workloads/cuda_variants.hpp"
#include "apps/workloads/tiles.hpp"
#include "framework/gate.hpp"
#include "framework/memory_pool.hpp"

namespace weft::bench {
namespace {

// What went over the links and out of memories, so far.
struct Traffic {
  double copied = 0, written_back = 0;
  std::uint64_t evictions = 0;

  static Traffic of(const Fabric& fabric) {
    Traffic traffic;
    for (const auto& load : fabric.loads)
      traffic.copied += static_cast<double>(load->total_bytes.load(std::memory_order_relaxed));
    if (fabric.gate) {
      traffic.written_back = static_cast<double>(fabric.gate->bytes_written_back());
      traffic.evictions = fabric.gate->evictions();
    }
    return traffic;
  }
  [[nodiscard]] Traffic since(const Traffic& before) const {
    return {copied - before.copied, written_back - before.written_back,
            evictions - before.evictions};
  }
};

struct CholeskyRun {
  std::vector<double> seconds;
  Traffic traffic;  // of the last run
  std::int64_t tile = 0, panel = 0;
  std::uint64_t ops = 0;
  std::string check, devices;
};

bool has_cuda_gpu(const Runtime& runtime) {
  for (std::size_t g = 0; g < runtime.gpu_count(); ++g)
    if (runtime.engine_of(runtime.gpu(g)) == "cuda") return true;
  return false;
}

std::vector<Device> named_devices(const Runtime& runtime, const std::vector<std::string>& names) {
  if (names.empty()) return runtime.devices();
  std::vector<Device> devices;
  for (const std::string& name : names) devices.push_back(runtime.device(name));
  return devices;
}

// The smallest memory of the GPUs, or of all devices if there are none.
std::size_t least_budget(const Runtime& runtime, const std::vector<Device>& devices) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const bool gpus : {true, false}) {
    for (const Device& device : devices)
      if ((device.place().kind == DeviceKind::Gpu) == gpus)
        least = std::min(least, runtime.fabric().memories[device.place().memory]->budget());
    if (least < std::numeric_limits<std::size_t>::max()) break;
  }
  return least;
}

// Large tiles for products, many for what runs at the same time. Of the largest too few fit a
// memory that does not hold the matrix.
std::int64_t usual_tile(std::int64_t n, std::size_t element_bytes, std::size_t budget) {
  constexpr std::int64_t kStep = 128, kUsual = 2048, kMost = 4096;
  const auto rounded = [&](std::int64_t extent) {
    return std::max(kStep, (extent + kStep - 1) / kStep * kStep);
  };
  const double triangle =
      static_cast<double>(n) * static_cast<double>(n) / 2 * static_cast<double>(element_bytes);
  const std::int64_t small = std::min(kUsual, rounded(n / 8));
  if (triangle > 0.9 * static_cast<double>(budget)) return small;
  return std::clamp(rounded(n / 16), small, kMost);
}

template <class T>
CholeskyRun measure_tiled(const Runtime& runtime, const CholeskyOptions& options, std::int64_t n) {
  const std::vector<Device> devices = named_devices(runtime, options.devices);
  const Device anywhere = runtime.anywhere(workloads::placement_among(options.policy, devices));
  CholeskyRun measured;
  for (const Device& device : devices)
    measured.devices += (measured.devices.empty() ? "" : ", ") + device.name();
  const std::size_t budget = least_budget(runtime, devices);
  measured.tile = std::min(n, options.tile > 0 ? options.tile : usual_tile(n, sizeof(T), budget));
  TiledCholesky<T> a(n, measured.tile);
  const auto tile_bytes =
      static_cast<std::size_t>(measured.tile) * static_cast<std::size_t>(measured.tile) * sizeof(T);
  measured.panel = options.panel > 0 ? options.panel : panel_columns(a.count(), tile_bytes, budget);
  for (std::uint32_t r = 0; r <= options.repeats; ++r) {
    a.make(anywhere);
    runtime.wait_idle();
    const Traffic before = Traffic::of(runtime.fabric());
    const DeviceStopwatch watch(runtime);
    measured.ops = a.factor(anywhere, measured.panel);
    a.wait();
    const double seconds = watch.seconds();
    runtime.wait_idle();
    measured.traffic = Traffic::of(runtime.fabric()).since(before);
    if (r > 0) measured.seconds.push_back(seconds);
  }
  measured.check = runtime.has_data() ? a.check(anywhere) : "not checked: no data";
  return measured;
}

void report_cholesky(const CholeskyRun& measured, const CholeskyPeer& peer,
                     const CholeskyOptions& options, std::int64_t n,
                     nlohmann::ordered_json document, apps::Output& output) {
  constexpr double kTera = 1e12, kGiga = 1e9;
  const double flops = std::pow(static_cast<double>(n), 3) / 3;
  const Spread ours = spread_of(measured.seconds), theirs = spread_of(peer.seconds);
  const bool has_peer = !peer.seconds.empty();
  const double ratio = has_peer ? theirs.median / ours.median : 0;
  apps::Table table({"", "s", "least", "most", "Tflop/s"});
  auto row = [&](const std::string& name, const Spread& seconds) {
    auto text = [](const char* format, double value) {
      char buffer[32];
      std::snprintf(buffer, sizeof buffer, format, value);
      return std::string(buffer);
    };
    table.add({name, text("%.4f", seconds.median), text("%.4f", seconds.least),
               text("%.4f", seconds.most), text("%.3f", flops / seconds.median / kTera)});
  };
  row("weft on " + measured.devices, ours);
  if (has_peer) row(peer.name, theirs);
  output.print("\n%s of %lld x %lld, tiles of %lld, panels of %lld columns, placed by %s\n\n%s",
               options.dtype.c_str(), static_cast<long long>(n), static_cast<long long>(n),
               static_cast<long long>(measured.tile), static_cast<long long>(measured.panel),
               options.policy.c_str(), table.text().c_str());
  if (has_peer) output.print("%.3f x the rate of %s\n", ratio, peer.name.c_str());
  if (!peer.left_out.empty())
    output.print("%s left out: %s\n", peer.name.c_str(), peer.left_out.c_str());
  output.print(
      "%.3f GB copied over links, %.3f GB of them written back, %llu replicas evicted\n%s\n",
      measured.traffic.copied / kGiga, measured.traffic.written_back / kGiga,
      static_cast<unsigned long long>(measured.traffic.evictions), measured.check.c_str());

  nlohmann::ordered_json entry{{"n", n},
                               {"tile", measured.tile},
                               {"panel", measured.panel},
                               {"dtype", options.dtype},
                               {"policy", options.policy},
                               {"memory", options.common.memory},
                               {"devices", measured.devices},
                               {"ops", measured.ops}};
  put(entry, "seconds", ours);
  entry["flops_per_second"] = flops / ours.median;
  entry["bytes_copied"] = measured.traffic.copied;
  entry["bytes_written_back"] = measured.traffic.written_back;
  entry["evictions"] = measured.traffic.evictions;
  entry["check"] = measured.check;
  if (has_peer) {
    entry["peer"] = peer.name;
    put(entry, "peer_seconds", theirs);
    entry["ratio_to_peer"] = ratio;
  } else if (!peer.left_out.empty()) {
    entry["peer_left_out"] = peer.left_out;
  }
  document["results"].push_back(std::move(entry));
  output.write_json(document.dump(1));
}

template <class T>
void run_cholesky_of(const CholeskyOptions& options, apps::Output& output) {
  workloads::add_cuda_variants();
  const RuntimeOptions made = apps::to_runtime_options(options.common, false);
  auto runtime = std::make_unique<Runtime>(made);
  print_devices(output, *runtime, "cholesky");
  const std::int64_t n = options.n > 0 ? options.n : has_cuda_gpu(*runtime) ? 16384 : 2048;
  const auto document = document_head(*runtime, "cholesky", options.repeats);
  const bool has_peer = !options.no_peer && !runtime->is_simulated();
  const CholeskyRun measured = measure_tiled<T>(*runtime, options, n);
  output.write_trace(*runtime);
  runtime.reset();  // its memory is the peer's now
  CholeskyPeer peer;
  if (has_peer) try {
      peer = measure_peer<T>(made, n, options.repeats);
    } catch (const std::exception& error) {  // what was measured before stays
      peer.left_out = error.what();
    }
  report_cholesky(measured, peer, options, n, document, output);
}

}  // namespace

int run_cholesky(const CholeskyOptions& options, apps::Output& output) {
  if (options.dtype == "fp64")
    run_cholesky_of<double>(options, output);
  else
    run_cholesky_of<float>(options, output);
  return 0;
}

}  // namespace weft::bench
