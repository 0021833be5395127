#include "apps/experiment/runner.hpp"

#include <algorithm>
#include <exception>

#include "apps/experiment/engine.hpp"
#include "apps/mlp/cuda_variants.hpp"
#include "framework/trace.hpp"

namespace weft::experiment {
namespace {

/// Runs the missing repeats of one point.
class PointRun {
 public:
  PointRun(const Point& point, int repeats, RunLog& log)
      : point_(point), workload_(workloads::find(point.workload)), repeats_(repeats), log_(log) {}

  [[nodiscard]] bool is_done() const {
    for (int repeat = 0; repeat < repeats_; ++repeat)
      if (!log_.has(record_of(point_, repeat).key())) return false;
    return true;
  }

  /// Empty, or why the point was left out.
  std::string operator()(const RuntimeOptions& options, const std::function<void()>& on_run) {
    RunRecord failed = record_of(point_, 0);
    try {
      const auto made = runtime_of(point_, options);
      const Runtime& runtime = *made;
      std::string reason;
      const std::vector<Device> devices = point_.devices.of(runtime, reason);
      if (devices.empty()) return reason;
      runtime.tracer()->set_recording(false);
      const workloads::Context context{runtime, devices, point_.values};
      if (!runtime.is_simulated()) workload_.run(context);
      for (int repeat = 0; repeat < repeats_; ++repeat) {
        failed.repeat = repeat;
        if (!log_.has(failed.key())) log_.add(one(context, repeat));
        on_run();
      }
    } catch (const std::exception& error) {
      failed.error = error.what();
      log_.add(failed);
    }
    return "";
  }

 private:
  [[nodiscard]] RunRecord one(const workloads::Context& context, int repeat) const {
    RunRecord record = record_of(point_, repeat);
    for (const Device& device : context.devices) record.device_names.push_back(device.name());
    record.result = workload_.run(context);
    add_recording(record, context.runtime.tracer()->collect(), repeat == 0);
    return record;
  }

  const Point& point_;
  const workloads::Workload& workload_;
  const int repeats_;
  RunLog& log_;
};

}  // namespace

Outcome run_all(const Spec& spec, const std::vector<Point>& points, RunLog& log,
                const std::function<void(std::uint64_t, const std::string&)>& on_done) {
  mlp::add_cuda_variants();
  Outcome outcome;
  for (const MachineChoice& choice : spec.machines)
    outcome.machines.push_back({choice.label, choice.source, machine_of(choice)});

  std::uint64_t done = 0;
  for (const Point& point : points) {
    const std::uint64_t before = done;
    PointRun run(point, spec.repeats, log);
    const std::string note = point.workload + " on " + point.machine.label;
    if (!run.is_done()) {
      const auto machine =
          std::find_if(outcome.machines.begin(), outcome.machines.end(),
                       [&](const UsedMachine& each) { return each.label == point.machine.label; });
      std::string reason;
      const auto options = runtime_options(point, machine->machine, reason);
      if (options) reason = run(*options, [&] { on_done(++done, note); });
      if (!reason.empty()) outcome.left_out.push_back({point, reason});
    }
    done = before + static_cast<std::uint64_t>(spec.repeats);
    on_done(done, note);
  }
  return outcome;
}

}  // namespace weft::experiment
