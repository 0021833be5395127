#include "apps/calibrate/recorder.hpp"

#include <algorithm>
#include <unordered_map>

namespace weft::calibrate {
namespace {

// An op whose parts several lanes may have run.
struct Ran {
  const std::string* kernel = nullptr;
  const std::string* actor = nullptr;
  std::int64_t start = 0, end = 0, busy = 0;  // ns; `busy` summed over lanes
  bool failed = false;
};

std::map<std::uint64_t, Ran> ops_of(const TraceData& data) {
  std::map<std::uint64_t, Ran> ops;
  for (const TraceData::Span& span : data.spans) {
    if (span.kind != SpanKind::Kernel || span.op == 0) continue;
    const auto [entry, is_new] = ops.try_emplace(span.op);
    Ran& op = entry->second;
    op.kernel = &span.name;
    op.actor = &data.tracks[span.track].actor;
    op.start = is_new ? span.start_ns : std::min(op.start, span.start_ns);
    op.end = is_new ? span.end_ns : std::max(op.end, span.end_ns);
    op.busy += span.end_ns - span.start_ns;
    op.failed = op.failed || span.failed;
  }
  return ops;
}

}  // namespace

void Recorder::add(const TraceData& data, const std::map<std::string, std::string>& model_of,
                   const std::string& precision) {
  std::unordered_map<std::uint64_t, const TraceData::OpCost*> cost_of;
  for (const TraceData::OpCost& cost : data.costs) cost_of.emplace(cost.op, &cost);
  for (const auto& [id, op] : ops_of(data)) {
    const auto cost = cost_of.find(id);
    const auto model = model_of.find(*op.actor);
    const std::int64_t ns = op.end - op.start;
    if (cost == cost_of.end() || model == model_of.end() || op.failed || ns <= 0) continue;
    const TraceData::OpCost& work = *cost->second;
    const std::string in = work.is_fp64 ? "fp64" : work.is_product ? precision : "fp32";
    Sample& sample = models_[model->second][*op.kernel][{in, work.flops, work.bytes}];
    sample.seconds.push_back(1e-9 * static_cast<double>(ns));
    sample.cores.push_back(std::max(1.0, static_cast<double>(op.busy) / static_cast<double>(ns)));
  }
}

std::map<std::string, std::vector<Calibration::Point>> Recorder::kernels(
    const std::string& model) const {
  std::map<std::string, std::vector<Calibration::Point>> made;
  const auto found = models_.find(model);
  if (found == models_.end()) return made;
  for (const auto& [kernel, samples] : found->second)
    for (const auto& [what, sample] : samples) {
      const auto& [precision, flops, bytes] = what;
      made[kernel].push_back(
          {flops, bytes, figure_of(sample.seconds), figure_of(sample.cores).median, precision});
    }
  return made;
}

}  // namespace weft::calibrate
