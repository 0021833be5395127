#include "apps/mlp/data_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "apps/mlp/random.hpp"

namespace weft::mlp::kernels {
namespace {

constexpr std::size_t kRowsTogether = 32;  // about 10 µs of work
constexpr std::uint64_t kShuffles = 1000;  // purposes of streams from here on

// A number below `bound` from 64 random bits; the bias is below 2^-32 (Lemire, 2019).
std::uint32_t below(std::uint32_t bound, std::uint64_t bits) {
  return static_cast<std::uint32_t>((bits >> 32) * bound >> 32);
}

void normalise_row(const std::uint8_t* pixels, float scale, In<float> offsets, float* to,
                   std::size_t width) {
  const std::size_t count = offsets.size();
  for (std::size_t p = 0; p < count; ++p)
    to[p] = scale * static_cast<float>(pixels[p]) + offsets[p];
  to[count] = 1.0f;
  std::fill(to + count + 1, to + width, 0.0f);
}

void run_load(Cpu& cpu, std::uint64_t first, float scale, In<float> offsets,
              In<std::uint8_t> images, In<std::uint8_t> labels, In<std::uint32_t> order,
              Out<float> x, Out<std::uint8_t> y) {
  const std::size_t pixels = offsets.size();
  const auto width = static_cast<std::size_t>(x.dim(1));
  cpu.parallel_ranges(y.size(), kRowsTogether, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t sample = order[first + row];
      normalise_row(images.data() + sample * pixels, scale, offsets, x.data() + row * width, width);
      y[row] = labels[sample];
    }
  });
}

void run_gather(Cpu& cpu, std::uint64_t first, In<std::uint8_t> images, In<std::uint8_t> labels,
                In<std::uint32_t> order, Out<std::uint8_t> records) {
  constexpr std::size_t kRecordsTogether = 256;  // about 10 µs of work
  const auto pixels = static_cast<std::size_t>(images.dim(1));
  const auto rows = static_cast<std::size_t>(records.dim(0));
  const auto bytes = static_cast<std::size_t>(records.dim(1));
  cpu.parallel_ranges(rows, kRecordsTogether, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t sample = order[first + row];
      std::uint8_t* to = records.data() + row * bytes;
      std::memcpy(to, images.data() + sample * pixels, pixels);
      to[pixels] = labels[sample];
      std::memset(to + pixels + 1, 0, bytes - pixels - 1);
    }
  });
}

void run_normalise(Cpu& cpu, std::uint64_t first, float scale, In<float> offsets,
                   In<std::uint8_t> records, Out<float> x, Out<std::uint8_t> y) {
  const std::size_t pixels = offsets.size();
  const auto width = static_cast<std::size_t>(x.dim(1));
  const auto bytes = static_cast<std::size_t>(records.dim(1));
  cpu.parallel_ranges(y.size(), kRowsTogether, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::uint8_t* record = records.data() + (first + row) * bytes;
      normalise_row(record, scale, offsets, x.data() + row * width, width);
      y[row] = record[pixels];
    }
  });
}

}  // namespace

const Kernel<std::uint64_t, std::uint64_t, Out<std::uint32_t>>& shuffle() {
  static const Kernel<std::uint64_t, std::uint64_t, Out<std::uint32_t>> kernel =
      Kernel("mlp_shuffle")
          .cpu([](Cpu&, std::uint64_t seed, std::uint64_t epoch, Out<std::uint32_t> order) {
            std::iota(order.begin(), order.end(), 0u);
            const std::uint64_t numbers = stream(seed, kShuffles + epoch);
            for (auto i = static_cast<std::uint32_t>(order.size()); i > 1; --i)
              std::swap(order[i - 1], order[below(i, random_bits(numbers, i))]);
          });
  return kernel;
}

const Kernel<Out<std::uint32_t>>& in_order() {
  static const Kernel<Out<std::uint32_t>> kernel =
      Kernel("mlp_in_order").cpu([](Cpu&, Out<std::uint32_t> order) {
        std::iota(order.begin(), order.end(), 0u);
      });
  return kernel;
}

const Kernel<std::uint64_t, In<std::uint32_t>, Out<std::uint32_t>>& take() {
  static const Kernel<std::uint64_t, In<std::uint32_t>, Out<std::uint32_t>> kernel =
      Kernel("mlp_take")
          .cpu([](Cpu&, std::uint64_t first, In<std::uint32_t> order, Out<std::uint32_t> part) {
            std::copy_n(order.begin() + static_cast<std::ptrdiff_t>(first), part.size(),
                        part.begin());
          });
  return kernel;
}

const Kernel<std::uint64_t, float, In<float>, In<std::uint8_t>, In<std::uint8_t>, In<std::uint32_t>,
             Out<float>, Out<std::uint8_t>>&
load() {
  static const Kernel<std::uint64_t, float, In<float>, In<std::uint8_t>, In<std::uint8_t>,
                      In<std::uint32_t>, Out<float>, Out<std::uint8_t>>
      kernel =
          Kernel("mlp_load")
              .cpu(run_load)
              .cost([](std::uint64_t, float, In<float> offsets, In<std::uint8_t>, In<std::uint8_t>,
                       In<std::uint32_t>, Out<float> x, Out<std::uint8_t> y) {
                const auto rows = static_cast<double>(y.size());
                const auto pixels = static_cast<double>(offsets.size());
                return Cost{2 * rows * pixels,
                            rows * (pixels + 5) + sizeof(float) * static_cast<double>(x.size())};
              });
  return kernel;
}

const Kernel<std::uint64_t, In<std::uint8_t>, In<std::uint8_t>, In<std::uint32_t>,
             Out<std::uint8_t>>&
gather() {
  static const Kernel<std::uint64_t, In<std::uint8_t>, In<std::uint8_t>, In<std::uint32_t>,
                      Out<std::uint8_t>>
      kernel = Kernel("mlp_gather")
                   .cpu(run_gather)
                   .cost([](std::uint64_t, In<std::uint8_t>, In<std::uint8_t>, In<std::uint32_t>,
                            Out<std::uint8_t> records) {
                     return Cost{0, 2 * static_cast<double>(records.size())};
                   });
  return kernel;
}

const Kernel<std::uint64_t, float, In<float>, In<std::uint8_t>, Out<float>, Out<std::uint8_t>>&
normalise() {
  static const Kernel<std::uint64_t, float, In<float>, In<std::uint8_t>, Out<float>,
                      Out<std::uint8_t>>
      kernel = Kernel("mlp_normalise")
                   .cpu(run_normalise)
                   .cost([](std::uint64_t, float, In<float>, In<std::uint8_t> records, Out<float> x,
                            Out<std::uint8_t> y) {
                     const double bytes =
                         static_cast<double>(y.size()) * static_cast<double>(records.dim(1));
                     return Cost{2 * static_cast<double>(x.size()),
                                 bytes + sizeof(float) * static_cast<double>(x.size())};
                   });
  return kernel;
}

}  // namespace weft::mlp::kernels
