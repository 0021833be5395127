#include "apps/workloads/products.hpp"

namespace weft::workloads {

Matrices products(const std::vector<Device>& devices, const Tensor<float>& x, std::int64_t count) {
  Matrices results;
  for (std::int64_t i = 0; i < count; ++i)
    for (const Device& device : devices) results.push_back(device.matmul(x, x));
  return results;
}

void warm(const std::vector<Device>& devices, const Tensor<float>& x) {
  when_all(products(devices, x, 1)).wait();
}

Precision widest_precision(const Context& context) {
  for (const Device& device : context.devices)
    if (context.runtime.engine_of(device) == "cuda") return Precision::Bf16;
  return Precision::Fp32;
}

std::vector<Parameter> product_parameters() {
  return {number("n", 96, 1, 1 << 15, "matrices are n x n"),
          number("kernels", 12, 1, 1'000'000, "products on each device")};
}

double product_flops(const Context& context) {
  const auto n = static_cast<double>(context.values.number("n"));
  return 2 * n * n * n * static_cast<double>(context.values.number("kernels")) *
         static_cast<double>(context.devices.size());
}

std::uint64_t product_count(const Context& context) {
  return static_cast<std::uint64_t>(context.values.number("kernels")) * context.devices.size();
}

}  // namespace weft::workloads
