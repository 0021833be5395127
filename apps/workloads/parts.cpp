#include "apps/workloads/parts.hpp"

#include "apps/workloads/workload.hpp"

namespace weft::workloads {

const Kernel<std::uint64_t, Out<float>>& fill_part() {
  static const auto kernel = Kernel("fill_part")
                                 .cpu([](Cpu&, std::uint64_t seed, Out<float> part) {
                                   for (std::size_t i = 0; i < part.size(); ++i)
                                     part[i] = static_cast<float>(part_element(seed, i));
                                 })
                                 .cost([](std::uint64_t, Out<float> part) {
                                   return Cost{0, 4.0 * static_cast<double>(part.size())};
                                 });
  return kernel;
}

Tensor<float> filled_part(const Device& device, std::uint64_t seed, std::int64_t elements) {
  auto part = device.tensor<float>({elements});
  device.submit(fill_part(), seed, out(part));
  return part;
}

std::vector<Parameter> part_parameters(const std::string& elements_of) {
  return {number("elements", 1 << 14, 1, 1 << 28, "fp32 numbers " + elements_of),
          number("rounds", 4, 1, 10'000, "rounds, independent of each other")};
}

}  // namespace weft::workloads
