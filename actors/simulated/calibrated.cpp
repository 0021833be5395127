#include "actors/simulated/calibrated.hpp"

#include <algorithm>
#include <cmath>

#include "actors/runtime_options.hpp"
#include "actors/simulated/measured_kernels.hpp"

namespace weft {
namespace {

// Flops a second and core; 0 if nothing was measured in `precision`.
double best_compute(const Calibration::Device& device, const std::string& precision) {
  double best = 0;
  for (const auto& [name, points] : device.kernels)
    for (const Calibration::Point& point : points)
      if (point.precision == precision)
        best = std::max(best, point.flops / (point.seconds.median * point.cores));
  return best;
}

// Bytes a second and core, among the kernels' calls that move most: the others may find their data
// in caches.
double best_memory(const Calibration::Device& device) {
  double most = 0, best = 0;
  for (const auto& [name, points] : device.kernels)
    for (const Calibration::Point& point : points) most = std::max(most, point.bytes);
  for (const auto& [name, points] : device.kernels)
    for (const Calibration::Point& point : points)
      if (point.bytes >= 0.5 * most)
        best = std::max(best, point.bytes / (point.seconds.median * point.cores));
  return best;
}

bool is_emulated_gpu(const Machine& machine, Node node) {
  return node.kind == NodeKind::Gpu && machine.gpus[node.index].model == "emulated";
}

bool is_gpu(Node node) {
  return node.kind == NodeKind::Gpu;
}

// One that leads the same way: from a GPU or not, to a GPU or not; else any.
const Calibration::Link* measured_like(const std::vector<const Calibration::Link*>& alike,
                                       Node from, Node to) {
  for (const Calibration::Link* link : alike)
    if (is_gpu(link->from) == is_gpu(from) && is_gpu(link->to) == is_gpu(to)) return link;
  return alike.empty() ? nullptr : alike.front();
}

std::chrono::nanoseconds nanoseconds(const Calibration::Figure& figure) {
  return std::chrono::nanoseconds(std::llround(figure.median));
}

void calibrate_bus(Link& link, const Machine& machine, const Calibration& calibration) {
  const bool leads_to_a = link.a.kind == NodeKind::Socket;
  const Node socket = leads_to_a ? link.a : link.b, memory = leads_to_a ? link.b : link.a;
  if (socket.kind != NodeKind::Socket || memory.kind != NodeKind::Memory) return;
  for (const Calibration::Memory& measured : calibration.memories) {
    if (measured.model != machine.sockets[socket.index].model) continue;
    link.bytes_per_second[leads_to_a ? 1 : 0] = measured.read_bytes_per_second.median;
    link.bytes_per_second[leads_to_a ? 0 : 1] = measured.write_bytes_per_second.median;
    if (measured.latency_ns.median > 0) link.latency = nanoseconds(measured.latency_ns);
    link.provenance = Provenance::Measured;
    return;
  }
}

}  // namespace

DeviceModel calibrated(DeviceModel model, const Calibration::Device& device, Precision precision) {
  const auto take = [&](double& rate, double measured) {
    rate = measured > 0 ? measured : rate * model.efficiency;
  };
  take(model.fp64, best_compute(device, "fp64"));
  take(model.fp32, best_compute(device, "fp32"));
  take(model.fp64_product, best_compute(device, "fp64"));
  take(model.product, best_compute(device, to_string(precision)));
  take(model.memory, best_memory(device));
  model.efficiency = 1;
  model.launch_ns = std::llround(device.launch_ns.median);
  model.gap_ns = std::llround(device.gap_ns.median);
  model.measured = std::make_shared<MeasuredKernels>(device, precision);
  return model;
}

Machine with_calibrated_links(Machine machine, const Calibration& calibration) {
  for (Link& link : machine.links) {
    if (link.provenance == Provenance::Measured) continue;
    if (link.kind == LinkKind::Bus) {
      calibrate_bus(link, machine, calibration);
      continue;
    }
    const bool emulated = is_emulated_gpu(machine, link.a) || is_emulated_gpu(machine, link.b);
    std::vector<const Calibration::Link*> alike;
    for (const Calibration::Link& each : calibration.links)
      if (each.kind == link.kind && each.width == link.width &&
          each.generation == link.generation && each.is_emulated == emulated)
        alike.push_back(&each);
    const Calibration::Link* there = measured_like(alike, link.a, link.b);
    const Calibration::Link* back = measured_like(alike, link.b, link.a);
    if (!there || !back) continue;
    link.bytes_per_second[0] = there->bytes_per_second.median;
    link.bytes_per_second[1] = back->bytes_per_second.median;
    link.latency = nanoseconds(there->latency_ns);
    link.provenance = Provenance::Measured;
  }
  return machine;
}

std::vector<std::string> models_not_in(const Calibration& calibration, const Machine& machine,
                                       bool with_gpus) {
  std::vector<std::string> missing;
  const auto look = [&](const std::string& model, bool gpu) {
    if (calibration.find(model, gpu)) return;
    const std::string shown = model.empty() ? "unknown" : model;
    if (std::find(missing.begin(), missing.end(), shown) == missing.end()) missing.push_back(shown);
  };
  for (const Socket& socket : machine.sockets) look(socket.model, false);
  if (with_gpus)
    for (const Gpu& gpu : machine.gpus) look(gpu.model, true);
  return missing;
}

}  // namespace weft
