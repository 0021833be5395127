#include "apps/calibrate/check.hpp"

#include <functional>
#include <utility>
#include <weft/weft.hpp>

#include "apps/calibrate/perceptron.hpp"
#include "apps/mlp/cuda_variants.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/workload.hpp"

namespace weft::calibrate {
namespace {

constexpr std::int64_t kSide = 512;
constexpr int kProducts = 50;

struct Program {
  std::string name;
  std::function<double(const Runtime&)> run;  ///< returns seconds by the devices' clock
};

// y = x·x, then y = y·x, …: each waits for the one before.
double chain_of_products(const Runtime& runtime, const Device& device) {
  const std::vector<float> values(static_cast<std::size_t>(kSide * kSide), 1.0f / kSide);
  const auto x = runtime.from_host(values, {kSide, kSide});
  device.matmul(x, x).future().wait();
  return workloads::timed(runtime, [&] {
    auto y = device.matmul(x, x);
    for (int i = 1; i < kProducts; ++i) y = device.matmul(y, x);
    y.future().wait();
  });
}

double run_and_copy(const Runtime& runtime) {
  const workloads::Workload& workload = workloads::find("run-and-copy");
  workloads::Values values(workload.parameters);
  values.set("n", std::to_string(kSide));
  values.set("kernels", "10");
  return workload.run({runtime, {runtime.gpu(0), runtime.gpu(1)}, std::move(values)}).seconds;
}

std::vector<Program> programs(const Runtime& runtime) {
  std::vector<std::string> devices{"socket0"};
  if (runtime.gpu_count() > 0 && runtime.engine_of(runtime.gpu(0)) == "cuda")
    devices.emplace_back("gpu0");
  std::vector<Program> made;
  for (const std::string& name : devices) {
    made.push_back({std::to_string(kProducts) + " products of " + std::to_string(kSide) +
                        ", a chain, on " + name,
                    [name](const Runtime& on) { return chain_of_products(on, on.device(name)); }});
    made.push_back({"perceptron, hidden 256, batch 256, on " + name, [name](const Runtime& on) {
                      return train(on, {on.device(name)}, {256, 256, 8192});
                    }});
  }
  if (runtime.gpu_count() > 1)
    made.push_back(
        {"10 products of " + std::to_string(kSide) + " on each of gpu0, gpu1, copied to the host",
         run_and_copy});
  return made;
}

}  // namespace

std::vector<Checked> check(const RuntimeOptions& options,
                           const std::shared_ptr<const Calibration>& calibration,
                           std::uint32_t repeats, const Report& report) {
  mlp::add_cuda_variants();
  std::vector<Checked> rows;
  std::vector<Program> list;
  RuntimeOptions virtually = options;
  {
    const Runtime runtime(options);
    list = programs(runtime);
    virtually.machine = runtime.machine();
    if (runtime.gpu_count() == 0) virtually.gpus = GpuMode::None;
    for (const Program& program : list) {
      std::vector<double> seconds;
      for (std::uint32_t i = 0; i <= repeats; ++i) {
        report.step(program.name + ", run " + std::to_string(i + 1));
        const double took = program.run(runtime);
        if (i > 0) seconds.push_back(took);
      }
      rows.push_back({program.name, figure_of(seconds)});
    }
  }
  virtually.simulate = true;
  virtually.data = SimulatedData::None;
  virtually.calibration = calibration;
  if (virtually.gpus != GpuMode::None) virtually.gpus = GpuMode::Emulated;
  const Runtime runtime(virtually);
  for (std::size_t i = 0; i < list.size(); ++i) {
    report.step(list[i].name + ", in virtual time");
    rows[i].predicted = list[i].run(runtime);
  }
  return rows;
}

}  // namespace weft::calibrate
