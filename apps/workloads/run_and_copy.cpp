// Products whose results come to the host: run, copy, and both at once.
#include <algorithm>

#include "apps/overlap/landing.hpp"
#include "apps/overlap/reference.hpp"
#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/products.hpp"

namespace weft::workloads {
namespace {

Result run_and_copy(const Context& c) {
  const std::int64_t kernels = c.values.number("kernels");
  const std::int64_t n = c.values.number("n");
  const apps::Reference<float> reference(c.runtime, n, widest_precision(c));
  const auto& x = reference.tensor();
  const auto count = static_cast<int>(product_count(c));
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
  result.flops = product_flops(c);
  result.bytes = 4.0 * static_cast<double>(n * n) * count;
  result.ops = product_count(c);
  result.figures = {{"run_seconds", run},
                    {"copy_seconds", copy},
                    {"ratio", result.seconds / std::max(run, copy)}};
  result.check =
      checked(c.runtime, "elements of each product against dot products", [&] { landing.check(); });
  return result;
}

std::vector<Parameter> parameters() {
  auto list = product_parameters();
  list.push_back(word("to", {"pinned", "pageable"},
                      "where results come to: weft's host memory or the program's own"));
  return list;
}

}  // namespace

Workload run_and_copy_workload() {
  return {"run-and-copy",
          "products whose results come to the host while the next are computed",
          parameters(),
          {kernels::matmul().code()},
          run_and_copy};
}

}  // namespace weft::workloads
