// The two experiments of "Automatic Parallelism" (Dive into Deep Learning, 13.3) over any devices:
// https://d2l.ai/chapter_computational-performance/auto-parallelism.html
#include <algorithm>
#include <memory>
#include <vector>

#include "actors/runtime.hpp"
#include "apps/overlap/landing.hpp"
#include "apps/overlap/reference.hpp"
#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"

namespace weft::workloads {
namespace {

using Matrices = std::vector<Tensor<float>>;

// The widest bound that a product may need: the spec's options choose the precision, which the
// program does not see. CUDA devices may round inputs; others compute in fp32.
Precision widest_precision(const Context& c) {
  for (const Device& device : c.devices)
    if (c.runtime.engine_of(device) == "cuda") return Precision::Bf16;
  return Precision::Fp32;
}

Matrices products(const std::vector<Device>& devices, const Tensor<float>& x, std::int64_t count) {
  Matrices results;
  for (std::int64_t i = 0; i < count; ++i)
    for (const Device& device : devices) results.push_back(device.matmul(x, x));
  return results;
}

// The operand is where it is needed before anything is measured.
void warm(const std::vector<Device>& devices, const Tensor<float>& x) {
  when_all(products(devices, x, 1)).wait();
}

double flops_of(const Context& c) {
  const auto n = static_cast<double>(c.values.number("n"));
  return 2 * n * n * n * static_cast<double>(c.values.number("kernels")) *
         static_cast<double>(c.devices.size());
}

std::uint64_t ops_of(const Context& c) {
  return static_cast<std::uint64_t>(c.values.number("kernels")) * c.devices.size();
}

Result run_on_all(const Context& c) {
  const std::int64_t kernels = c.values.number("kernels");
  const apps::Reference<float> reference(c.runtime, c.values.number("n"), widest_precision(c));
  const auto& x = reference.tensor();
  warm(c.devices, x);
  double slowest = 0;
  for (const Device& device : c.devices)
    slowest = std::max(slowest,
                       timed(c.runtime, [&] { when_all(products({device}, x, kernels)).wait(); }));
  Matrices results;
  Result result;
  result.seconds = timed(c.runtime, [&] {
    results = products(c.devices, x, kernels);
    when_all(results).wait();
  });
  result.flops = flops_of(c);
  result.ops = ops_of(c);
  result.figures = {{"slowest_alone_seconds", slowest}, {"ratio", result.seconds / slowest}};
  result.check = checked(c.runtime, "elements of each product against dot products", [&] {
    for (const auto& y : results) reference.check(y.to_host().span());
  });
  return result;
}

Result run_and_copy(const Context& c) {
  const std::int64_t kernels = c.values.number("kernels");
  const std::int64_t n = c.values.number("n");
  const apps::Reference<float> reference(c.runtime, n, widest_precision(c));
  const auto& x = reference.tensor();
  const auto count = static_cast<int>(ops_of(c));
  apps::Landing<float> landing(reference, count, c.values.text("to") == "pageable");
  warm(c.devices, x);

  Matrices results;
  const double run = timed(c.runtime, [&] {
    results = products(c.devices, x, kernels);
    when_all(results).wait();
  });
  const double copy = timed(c.runtime, [&] {
    for (const auto& y : results) landing.take(y);
    landing.wait();
  });
  landing.clear();
  results.clear();

  Result result;
  result.seconds = timed(c.runtime, [&] {
    for (std::int64_t i = 0; i < kernels; ++i)
      for (const Device& device : c.devices) landing.take(device.matmul(x, x));
    landing.wait();
  });
  result.flops = flops_of(c);
  result.bytes = 4.0 * static_cast<double>(n * n) * count;
  result.ops = ops_of(c);
  result.figures = {{"run_seconds", run},
                    {"copy_seconds", copy},
                    {"ratio", result.seconds / std::max(run, copy)}};
  result.check =
      checked(c.runtime, "elements of each product against dot products", [&] { landing.check(); });
  return result;
}

std::vector<Parameter> parameters(bool is_copying) {
  std::vector<Parameter> list{number("n", 96, 1, 1 << 15, "matrices are n x n"),
                              number("kernels", 12, 1, 1'000'000, "products on each device")};
  if (is_copying)
    list.push_back(word("to", {"pinned", "pageable"},
                        "where results come to: weft's host memory or the program's own"));
  return list;
}

}  // namespace

Workload run_on_all_workload() {
  return {"run-on-all",
          "the same products on each device alone, then on all at once",
          parameters(false),
          {kernels::matmul().code()},
          run_on_all};
}

Workload run_and_copy_workload() {
  return {"run-and-copy",
          "products whose results come to the host while the next are computed",
          parameters(true),
          {kernels::matmul().code()},
          run_and_copy};
}

}  // namespace weft::workloads
