#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "actors/memory_budgets.hpp"
#include "actors/runtime_options.hpp"
#include "actors/runtime_parts.hpp"
#include "actors/simulated/scale.hpp"

namespace weft {
namespace {

// What options change about the run times of emulated GPUs.
std::string described(const EmulatedOptions& options) {
  std::ostringstream text;
  if (options.flops_per_second > 0) text << " flops=" << options.flops_per_second;
  if (options.memory_bytes_per_second > 0) text << " bandwidth=" << options.memory_bytes_per_second;
  if (options.launch.count() > 0) text << " launch=" << options.launch.count() << "ns";
  return text.str();
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw DeviceError("run costs \"" + path + "\": cannot be read");
  return text.str();
}

}  // namespace

std::vector<DeviceForecast> Runtime::Parts::forecasts() const {
  const std::string engine = simulation                       ? "simulated "
                             : gpu_domain == Domain::Cuda     ? "cuda "
                             : gpu_domain == Domain::Emulated ? "emulated "
                                                              : "host ";
  const SimulatedScale scale =
      simulation ? SimulatedScale(*options.simulated_scale, machine) : SimulatedScale();
  std::vector<DeviceForecast> made;
  for (const auto& place : fabric->places) {
    DeviceForecast forecast;
    DeviceModel model;
    if (place->kind == DeviceKind::Socket) {
      const Socket& socket = machine.sockets[place->number];
      model = core_model(machine, SocketId{place->number});
      forecast.width = std::max(1u, lane_cores(socket, *options.socket_lanes));
      forecast.model = (simulation ? "simulated core of " : "core of ") + socket.model;
    } else {
      model = gpu_model(machine, GpuId{place->number}, *options.precision, *options.emulated);
      forecast.width = engine == "emulated " ? options.emulated->compute_lanes : 1;
      forecast.model = engine + machine.gpus[place->number].model + " " +
                       to_string(*options.precision) +
                       (gpu_domain == Domain::Cuda ? "" : described(*options.emulated));
      // A thread of the host does what no rate was given for.
      const EmulatedOptions& given = *options.emulated;
      if (engine == "emulated " && given.flops_per_second <= 0 &&
          given.memory_bytes_per_second <= 0)
        model = core_model(machine, SocketId{0});
    }
    if (simulation) {  // devices of one model may be scaled one by one
      const Node node = place->kind == DeviceKind::Socket ? Node(SocketId{place->number})
                                                          : Node(GpuId{place->number});
      model = scale.applied(model, machine, node);
      std::ostringstream rates;
      rates << " " << model.fp32 << " flop/s, " << model.memory << " B/s";
      forecast.model += rates.str();
    }
    // A part of a split op has the socket's cores to itself; in virtual time an op has one.
    forecast.flops_per_second = model.fp32 * (simulation ? 1 : forecast.width);
    forecast.assumed = [model](Op& op) {
      return 1e-9 * static_cast<double>(model.gap_ns) + seconds_on(model, op);
    };
    made.push_back(std::move(forecast));
  }
  return made;
}

void Runtime::Parts::check_options() {
  (void)memory_budgets(*options.memory, machine);
  (void)pinned_budget(*options.memory);
  policies.push_back(make_placement(*options.placement));
  const std::string& path = *options.run_costs;
  if (path.empty() || !std::filesystem::exists(path)) return;
  run_costs_text = read_file(path);
  try {
    RunCosts({}).take_json(run_costs_text);
  } catch (const std::runtime_error& error) {
    throw DeviceError("run costs \"" + path + "\": " + error.what() +
                      "; it is written anew if you remove it");
  }
}

void Runtime::Parts::start_placer() {
  auto now = [this] {
    const std::chrono::nanoseconds time =
        simulation ? std::chrono::nanoseconds(simulation->program().now())
                   : std::chrono::steady_clock::now() - began;
    return std::chrono::duration<double>(time).count();
  };
  placer = std::make_unique<Placer>(*fabric, forecasts(), now);
  if (!run_costs_text.empty())
    if (const std::size_t foreign = placer->costs().take_json(run_costs_text))
      spdlog::info("run costs {}: {} points are of other devices", *options.run_costs, foreign);
  fabric->placer.store(placer.get(), std::memory_order_release);
}

Device Runtime::Parts::anywhere(std::shared_ptr<PlacementPolicy> policy) {
  std::lock_guard lock(placing);
  if (!placer) start_placer();
  if (policy && std::find(policies.begin(), policies.end(), policy) == policies.end())
    policies.push_back(policy);
  return {*fabric, *fabric->places.front(), policy ? *policy : *policies.front()};
}

void Runtime::Parts::write_run_costs() const {
  const std::string& path = *options.run_costs;
  if (path.empty() || !placer) return;
  // A whole file or the old one, whatever happens meanwhile.
  const std::string made = path + ".new";
  std::ofstream file(made);
  file << placer->costs().to_json();
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(made, path, error);
  if (!file || error) spdlog::error("run costs {}: cannot be written", path);
}

}  // namespace weft
