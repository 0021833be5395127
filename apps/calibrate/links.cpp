#include "apps/calibrate/links.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "apps/bench/links.hpp"
#include "apps/topo/measure_host.hpp"
#include "topology/discover.hpp"
#include "topology/names.hpp"
#include "topology/quantity.hpp"

namespace weft::calibrate {
namespace {

// Of one link: rates there and back, and latencies.
struct Samples {
  std::vector<double> there, back, latency;
};

const Link* link_of(const Machine& machine, LinkKind kind, Node a, Node b) {
  for (const Link& link : machine.links)
    if (link.kind == kind && link.a == a && link.b == b) return &link;
  return nullptr;
}

void add_memory(const Machine& machine, const Link& link, const Samples& samples,
                Calibration& calibration) {
  const std::string& model = machine.sockets[link.b.index].model;
  for (const Calibration::Memory& there : calibration.memories)
    if (there.model == model) return;
  calibration.memories.push_back(
      {model, figure_of(samples.there), figure_of(samples.back), figure_of(samples.latency)});
}

void add_link(const Link& link, const Samples& samples, Calibration& calibration) {
  Calibration::Link made{
      link.kind, link.width, link.generation,          link.a,
      link.b,    false,      figure_of(samples.there), figure_of(samples.latency)};
  calibration.links.push_back(made);
  std::swap(made.from, made.to);
  made.bytes_per_second = figure_of(samples.back);
  calibration.links.push_back(made);
}

// One that is alone between a socket and an emulated GPU.
const Link* link_between(const Machine& machine, Node socket, Node gpu) {
  for (const Link& link : machine.links)
    if ((link.a == socket && link.b == gpu) || (link.a == gpu && link.b == socket)) return &link;
  return nullptr;
}

}  // namespace

void add_links(const TopoHooks& hooks, std::uint32_t times, const Report& report,
               Calibration& calibration) {
  const Machine machine = hooks.discover_live ? hooks.discover_live() : discover();
  std::map<std::size_t, Samples> of_entry;
  Measurements last;
  for (std::uint32_t i = 0; i < times; ++i) {
    report.step("memory and links, " + std::to_string(i + 1) + " of " + std::to_string(times));
    last = measure_links(machine, hooks, [&](const std::string& line) {
      if (i + 1 == times) report.line(line);
    });
    for (std::size_t e = 0; e < last.links.size(); ++e) {
      const LinkFigures& figures = last.links[e].figures;
      of_entry[e].there.push_back(figures.alone[0]);
      of_entry[e].back.push_back(figures.alone[1]);
      of_entry[e].latency.push_back(static_cast<double>(figures.latency.count()));
    }
  }
  for (std::size_t e = 0; e < last.links.size(); ++e) {
    const auto& entry = last.links[e];
    const Link* link = link_of(machine, entry.kind, entry.a, entry.b);
    if (!link) continue;
    if (link->kind == LinkKind::Bus)
      add_memory(machine, *link, of_entry[e], calibration);
    else
      add_link(*link, of_entry[e], calibration);
  }
}

void add_emulated_links(const Runtime& runtime, std::uint32_t repeats, const Report& report,
                        Calibration& calibration) {
  constexpr std::size_t kSmall = 4096, kLarge = std::size_t{16} << 20;
  const Machine& machine = runtime.machine();
  const Node socket = SocketId{0}, gpu = GpuId{0};
  const Link* link = link_between(machine, socket, gpu);
  if (!link) return;
  const Device host = runtime.socket(0), device = runtime.gpu(0);
  for (const bool to_gpu : {true, false}) {
    const Device &from = to_gpu ? host : device, &to = to_gpu ? device : host;
    const std::string name = from.name() + " to " + to.name();
    report.step("link, " + name);
    const bench::Pattern pattern{"pair", name, {{from, to}}};
    const auto large =
        bench::measure(runtime, pattern, kLarge, bench::copies_of(kLarge, kLarge * 8), repeats);
    std::vector<double> alone;
    for (std::uint32_t i = 0; i < repeats; ++i)
      alone.push_back(1e3 * bench::measure(runtime, pattern, kSmall, 1, 3).alone_us);
    // The op that waits for the copy is submitted before and noticed behind it.
    const auto* op = calibration.find(to_gpu ? "emulated" : machine.sockets[0].model, to_gpu);
    const double beside = calibration.submission_ns.median + calibration.notice_ns.median +
                          (op ? op->launch_ns.median : 0);
    for (double& each : alone) each = std::max(0.0, each - beside);
    Calibration::Link made{
        link->kind, link->width, link->generation, to_gpu ? socket : gpu, to_gpu ? gpu : socket,
        true,       {},          figure_of(alone)};
    made.bytes_per_second = {1e9 * large.rate.median, 1e9 * large.rate.least, 1e9 * large.rate.most,
                             repeats};
    report.line(name + ": " + format_rate(made.bytes_per_second.median) + ", " +
                std::to_string(static_cast<int>(made.latency_ns.median)) + " ns");
    calibration.links.push_back(made);
  }
}

}  // namespace weft::calibrate
