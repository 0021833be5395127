#include "apps/calibrate/measure.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>

#include "actors/runtime_options.hpp"
#include "apps/calibrate/dispatch.hpp"
#include "apps/calibrate/links.hpp"
#include "apps/calibrate/perceptron.hpp"
#include "apps/calibrate/recorder.hpp"
#include "apps/mlp/cuda_variants.hpp"
#include "framework/trace.hpp"
#include "topology/describe.hpp"

namespace weft::calibrate {
namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

const std::string& model_of(const Runtime& runtime, const Device& device) {
  const Machine& machine = runtime.machine();
  if (device.kind() == DeviceKind::Socket) return machine.sockets[device.place().number].model;
  return machine.gpus[device.place().number].model;
}

/// The first device of each model.
std::vector<Device> different(const Runtime& runtime) {
  std::map<std::pair<bool, std::string>, bool> seen;
  std::vector<Device> found;
  for (const Device& device : runtime.devices())
    if (!std::exchange(seen[{device.kind() == DeviceKind::Gpu, model_of(runtime, device)}], true))
      found.push_back(device);
  return found;
}

std::map<std::string, std::string> models(const Runtime& runtime) {
  std::map<std::string, std::string> made;
  for (const Device& device : runtime.devices()) made[device.name()] = model_of(runtime, device);
  return made;
}

std::string shown(const Calibration::Figure& figure) {
  char text[96];
  std::snprintf(text, sizeof text, "%.0f ns (%.0f to %.0f)", figure.median, figure.least,
                figure.most);
  return text;
}

Calibration::Figure less(Calibration::Figure figure, double what) {
  for (double* each : {&figure.median, &figure.least, &figure.most})
    *each = std::max(0.0, *each - what);
  return figure;
}

// Of several devices.
Calibration::Figure middle(const std::vector<Calibration::Figure>& figures) {
  std::vector<double> medians;
  Calibration::Figure all = figures.front();
  for (const auto& figure : figures) {
    medians.push_back(figure.median);
    all.least = std::min(all.least, figure.least);
    all.most = std::max(all.most, figure.most);
  }
  all.samples = 0;
  for (const auto& figure : figures) all.samples += figure.samples;
  all.median = figure_of(medians).median;
  return all;
}

/// Runtimes of one set of options, as they are needed.
class Bench {
 public:
  Bench(const RuntimeOptions& options, const Effort& effort, const Report& report)
      : options_(options), effort_(effort), report_(report) {}

  // Without a recorder, which costs some time.
  void measure_dispatch_of_all(Calibration& calibration) {
    const Runtime runtime(options_);
    std::vector<Calibration::Figure> submissions;
    for (const Device& device : different(runtime)) {
      report_.step(device.name() + ": dispatch");
      const DispatchFigures figures = measure_dispatch(runtime, device, effort_.repeats);
      submissions.push_back(figures.submission_ns);
      Calibration::Device made;
      made.model = model_of(runtime, device);
      made.is_gpu = device.kind() == DeviceKind::Gpu;
      made.launch_ns = figures.independent_ns;
      made.gap_ns = figures.chain_ns;
      calibration.devices.push_back(made);
      report_.line(device.name() + ": submission " + shown(figures.submission_ns) +
                   ", an op behind another " + shown(figures.chain_ns) + ", beside others " +
                   shown(figures.independent_ns));
    }
    calibration.submission_ns = middle(submissions);
  }

  // A socket's cores are woken; a GPU's actor launches op by op. The time of the op itself is no
  // gap.
  void measure_hand_off_of_all(Calibration& calibration) {
    const auto runtime = recording(options_);
    std::vector<Calibration::Figure> notices;
    for (const Device& device : different(*runtime)) {
      report_.step(device.name() + ": hand-off");
      const HandOffFigures figures = measure_hand_off(*runtime, device, effort_.repeats);
      notices.push_back(figures.notice_ns);
      for (Calibration::Device& made : calibration.devices) {
        if (made.is_gpu != (device.kind() == DeviceKind::Gpu) ||
            made.model != model_of(*runtime, device))
          continue;
        if (!made.is_gpu) made.launch_ns = figures.start_ns;
        made.gap_ns = less(made.gap_ns, figures.short_ns.median);
      }
      report_.line(device.name() + ": starts after " + shown(figures.start_ns) +
                   ", noticed after " + shown(figures.notice_ns));
    }
    calibration.notice_ns = middle(notices);
  }

  void record_kernels(Recorder& recorder) {
    const auto runtime = recording(options_);
    for (const Device& device : different(*runtime)) {
      report_.step(device.name() + ": products");
      run_products(*runtime, device, effort_, false);
      take(*runtime, recorder, Precision::Fp32);
      run_products(*runtime, device, effort_, true);
      take(*runtime, recorder, Precision::Fp32);
      report_.step(device.name() + ": memory");
      run_streams(*runtime, device, effort_);
      take(*runtime, recorder, Precision::Fp32);
    }
    std::vector<std::vector<Device>> groups;
    for (const Device& device : different(*runtime)) groups.push_back({device});
    if (runtime->gpu_count() > 1) groups.push_back({runtime->gpu(0), runtime->gpu(1)});
    for (const auto& group : groups)
      for (const auto& [hidden, batch] : {std::pair(64, 128), {256, 256}, {1024, 512}}) {
        report_.step("perceptron of " + std::to_string(hidden) + " on " + group.front().name() +
                     (group.size() > 1 ? " and the next" : ""));
        train(*runtime, group,
              {static_cast<std::size_t>(hidden), static_cast<std::size_t>(batch),
               static_cast<std::size_t>(effort_.samples)});
        take(*runtime, recorder, Precision::Fp32);
      }
  }

  // Of CUDA devices: others compute in fp32 whatever is asked.
  void record_precisions(Recorder& recorder) {
    for (const Precision precision : {Precision::Tf32, Precision::Bf16}) {
      RuntimeOptions options = options_;
      options.precision = precision;
      const auto runtime = recording(options);
      for (const Device& device : different(*runtime)) {
        if (runtime->engine_of(device) != "cuda") continue;
        report_.step(device.name() + ": products in " + to_string(precision));
        run_products(*runtime, device, effort_, false);
        take(*runtime, recorder, precision);
        train(*runtime, {device}, {256, 256, static_cast<std::size_t>(effort_.samples)});
        take(*runtime, recorder, precision);
      }
    }
  }

 private:
  [[nodiscard]] static std::unique_ptr<Runtime> recording(RuntimeOptions options) {
    options.trace = true;
    auto runtime = std::make_unique<Runtime>(std::move(options));
    runtime->tracer()->record_costs();
    return runtime;
  }
  void take(const Runtime& runtime, Recorder& recorder, Precision precision) const {
    recorder.add(runtime.tracer()->collect(), models(runtime), to_string(precision));
    runtime.tracer()->clear();
    runtime.tracer()->set_recording(true);
  }

  const RuntimeOptions options_;
  const Effort effort_;
  const Report& report_;
};

void report_kernels(const Calibration& calibration, const Report& report) {
  for (const Calibration::Device& device : calibration.devices) {
    std::map<std::string, double> flops, bytes;
    std::size_t points = 0;
    for (const auto& [name, list] : device.kernels)
      for (const Calibration::Point& point : list) {
        ++points;
        double& best = flops[point.precision];
        best = std::max(best, point.flops / point.seconds.median);
        bytes[name] = std::max(bytes[name], point.bytes / point.seconds.median);
      }
    std::string text = device.model + ": " + std::to_string(device.kernels.size()) + " kernels, " +
                       std::to_string(points) + " points; at best";
    char part[64];
    for (const auto& [precision, rate] : flops) {
      std::snprintf(part, sizeof part, " %.4g Gflop/s in %s,", 1e-9 * rate, precision.c_str());
      text += part;
    }
    std::snprintf(part, sizeof part, " fill %.3g GB/s", 1e-9 * bytes["fill"]);
    report.line(text + part);
  }
}

}  // namespace

Calibration measure(const RuntimeOptions& options, const TopoHooks& hooks, const Effort& effort,
                    const Report& report) {
  mlp::add_cuda_variants();
  Calibration calibration;
  calibration.made = today();
  RuntimeOptions in_fp32 = options;
  in_fp32.precision = Precision::Fp32;
  in_fp32.serial = false;
  in_fp32.simulate = false;
  Bench bench(in_fp32, effort, report);
  bench.measure_dispatch_of_all(calibration);
  bench.measure_hand_off_of_all(calibration);
  Recorder recorder;
  bench.record_kernels(recorder);
  bool has_cuda = false;
  {
    const Runtime runtime(in_fp32);
    calibration.machine = summary(runtime.machine());
    const bool has_gpus = runtime.gpu_count() > 0;
    has_cuda = has_gpus && runtime.engine_of(runtime.gpu(0)) == "cuda";
    if (has_gpus && !has_cuda) add_emulated_links(runtime, effort.repeats, report, calibration);
  }
  if (has_cuda) bench.record_precisions(recorder);
  for (Calibration::Device& device : calibration.devices)
    device.kernels = recorder.kernels(device.model);
  report_kernels(calibration, report);
  add_links(hooks, effort.repeats > 5 ? 3 : 1, report, calibration);
  return calibration;
}

}  // namespace weft::calibrate
