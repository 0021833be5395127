// The same products on each device alone, then on all at once: as fast as the slowest alone.
#include <algorithm>

#include "apps/overlap/reference.hpp"
#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/products.hpp"

namespace weft::workloads {
namespace {

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
  result.flops = product_flops(c);
  result.ops = product_count(c);
  result.figures = {{"slowest_alone_seconds", slowest}, {"ratio", result.seconds / slowest}};
  result.check = checked(c.runtime, "elements of each product against dot products", [&] {
    for (const auto& y : results) reference.check(y.to_host().span());
  });
  return result;
}

}  // namespace

Workload run_on_all_workload() {
  return {"run-on-all",
          "the same products on each device alone, then on all at once",
          product_parameters(),
          {kernels::matmul().code()},
          run_on_all};
}

}  // namespace weft::workloads
