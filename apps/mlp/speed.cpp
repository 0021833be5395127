#include "apps/mlp/speed.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace weft::mlp {
namespace {

struct Run {
  std::int64_t start_ns, end_ns;
};

// What the device ran, in order of submission. An op that several cores worked on has several
// spans. The update costs the same whatever the share, so it says nothing about shares.
std::map<std::uint64_t, Run> runs_on(const TraceData& data, const std::string& device) {
  std::map<std::uint64_t, Run> runs;
  for (const auto& span : data.spans) {
    if (span.name != "mlp_forward" && span.name != "mlp_gradient") continue;
    if (data.tracks[span.track].actor != device) continue;
    Run& run = runs.try_emplace(span.op, Run{span.start_ns, span.end_ns}).first->second;
    run.start_ns = std::min(run.start_ns, span.start_ns);
    run.end_ns = std::max(run.end_ns, span.end_ns);
  }
  return runs;
}

}  // namespace

bool are_alike(const Machine& machine, const Device& a, const Device& b) {
  if (a.kind() != b.kind()) return false;
  const std::uint32_t i = a.place().number, j = b.place().number;
  if (a.kind() == DeviceKind::Gpu) return machine.gpus[i].model == machine.gpus[j].model;
  return machine.sockets[i].model == machine.sockets[j].model &&
         machine.sockets[i].cpus.size() == machine.sockets[j].cpus.size();
}

std::vector<double> seconds_per_step(const TraceData& data, const std::vector<Device>& devices,
                                     std::size_t steps) {
  std::vector<double> medians;
  for (const Device& device : devices) {
    const auto runs = runs_on(data, device.name());
    const std::size_t ops_a_step = std::max<std::size_t>(runs.size() / steps, 1);
    std::vector<double> seconds(steps);
    std::size_t at = 0;
    for (const auto& [op, run] : runs)
      seconds[std::min(at++ / ops_a_step, steps - 1)] +=
          1e-9 * static_cast<double>(run.end_ns - run.start_ns);
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(steps / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    medians.push_back(*middle);
  }
  return medians;
}

}  // namespace weft::mlp
