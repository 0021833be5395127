#include "apps/bench/gpu_ops.hpp"

#include <algorithm>
#include <stdexcept>

#include "apps/bench/device_stopwatch.hpp"
#include "apps/common/output.hpp"
#include "apps/common/table.hpp"

namespace weft::bench {

GpuOpRow measure(const Runtime& runtime, const GpuOpCase& wanted, std::uint32_t repeats) {
  std::vector<double> us, submit_us;
  for (std::uint32_t r = 0; r <= repeats; ++r) {
    runtime.wait_idle();
    const DeviceStopwatch watch(runtime);
    const Future last = wanted.submit();
    const double submitted = watch.seconds();
    last.wait();
    const double done = watch.seconds();
    if (r == 0) continue;
    us.push_back(1e6 * done / wanted.count);
    submit_us.push_back(1e6 * submitted / wanted.count);
  }
  if (runtime.has_data()) wanted.check();
  return {wanted.name, wanted.per, wanted.count, spread_of(us), spread_of(submit_us)};
}

int run_gpu_ops(const GpuOpOptions& options, apps::Output& output) {
  const Runtime runtime(apps::to_runtime_options(options.common, false));
  print_devices(output, runtime, "gpu-ops");
  if (runtime.gpu_count() == 0)
    throw std::runtime_error("gpu-ops: there is no GPU; give it some with --gpus");
  if (options.learn) (void)runtime.anywhere();
  if (runtime.gpu_count() < 2) output.print("left out: cross_gpu: it needs 2 GPUs\n");
  std::vector<GpuOpCase> cases = gpu_op_cases(runtime, options.ops);
  std::string known;
  for (const GpuOpCase& each : cases) known += (known.empty() ? "" : ", ") + each.name;
  for (const std::string& name : options.only)
    if (std::none_of(cases.begin(), cases.end(),
                     [&](const GpuOpCase& each) { return each.name == name; }))
      throw std::invalid_argument("--only " + name + ": wanted some of " + known);

  auto document = document_head(runtime, "gpu-ops", options.repeats);
  document["learn"] = options.learn;
  apps::Table table({"", "per", "us", "least", "most", "of it submission"});
  std::string abouts;
  for (const GpuOpCase& each : cases) {
    if (!options.only.empty() &&
        std::find(options.only.begin(), options.only.end(), each.name) == options.only.end())
      continue;
    const GpuOpRow row = measure(runtime, each, options.repeats);
    table.add({row.name, row.per, format_figure(row.us.median), format_figure(row.us.least),
               format_figure(row.us.most), format_figure(row.submit_us.median)});
    abouts += "  " + row.name + ": " + each.about + "\n";
    nlohmann::ordered_json entry{{"name", row.name}, {"per", row.per}, {"count", row.count}};
    put(entry, "us", row.us);
    put(entry, "submit_us", row.submit_us);
    document["results"].push_back(std::move(entry));
  }
  output.print("\n%s\n%s", table.text().c_str(), abouts.c_str());
  output.write_json(document.dump(1));
  return 0;
}

}  // namespace weft::bench
