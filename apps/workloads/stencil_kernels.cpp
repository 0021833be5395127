#include "apps/workloads/stencil_kernels.hpp"

#include <algorithm>

#include "apps/workloads/measured.hpp"

namespace weft::workloads {

const Kernel<std::int64_t, Out<float>>& fill_strip() {
  static const auto kernel = Kernel("fill_strip")
                                 .cpu([](Cpu&, std::int64_t first_row, Out<float> strip) {
                                   const auto first =
                                       static_cast<std::uint64_t>(first_row * strip.dim(1));
                                   for (std::size_t i = 0; i < strip.size(); ++i)
                                     strip[i] = random_element(kStencilSeed, first + i);
                                 })
                                 .cost([](std::int64_t, Out<float> strip) {
                                   return Cost{0, 4.0 * static_cast<double>(strip.size())};
                                 });
  return kernel;
}

const Kernel<In<float>, Out<float>, Out<float>>& edges() {
  static const auto kernel =
      Kernel("edges")
          .cpu([](Cpu&, In<float> strip, Out<float> top, Out<float> bottom) {
            std::copy_n(strip.begin(), top.size(), top.begin());
            std::copy_n(strip.end() - bottom.size(), bottom.size(), bottom.begin());
          })
          .cost([](In<float>, Out<float> top, Out<float> bottom) {
            return Cost{0, 8.0 * static_cast<double>(top.size() + bottom.size())};
          });
  return kernel;
}

const Kernel<In<float>, In<float>, In<float>, Out<float>>& relax() {
  static const auto kernel =
      Kernel("relax")
          .cpu([](Cpu& cpu, In<float> from, In<float> above, In<float> below, Out<float> to) {
            const auto rows = static_cast<std::size_t>(from.dim(0));
            const auto width = static_cast<std::size_t>(from.dim(1));
            cpu.parallel_ranges(rows, 64, [&](std::size_t begin, std::size_t end) {
              for (std::size_t i = begin; i < end; ++i) {
                const float* row = from.data() + i * width;
                const float* up = i > 0 ? row - width : above.data();
                const float* down = i + 1 < rows ? row + width : below.data();
                float* next = to.data() + i * width;
                for (std::size_t j = 0; j < width; ++j) {
                  const float left = j > 0 ? row[j - 1] : 0.0f;
                  const float right = j + 1 < width ? row[j + 1] : 0.0f;
                  next[j] =
                      kStencilCentre * row[j] + kStencilSide * (up[j] + down[j] + left + right);
                }
              }
            });
          })
          .cost([](In<float> from, In<float>, In<float>, Out<float>) {
            return Cost{6.0 * static_cast<double>(from.size()),
                        8.0 * static_cast<double>(from.size())};
          });
  return kernel;
}

}  // namespace weft::workloads
