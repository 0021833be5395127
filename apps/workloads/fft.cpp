// A radix-2 fast Fourier transform over blocks (Cooley, Tukey 1965): log2(n) stages of butterflies
// on input in bit-reversed order. Stages within a block stay where it is; in the later ones each
// block needs its partner's of the stage before.
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>

#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"

namespace weft::workloads {
namespace {

constexpr std::uint64_t kSeed = 5;
constexpr std::size_t kMostChecked = 1 << 10;

std::uint64_t reversed(std::uint64_t i, int bits) {
  std::uint64_t result = 0;
  for (int b = 0; b < bits; ++b) result |= (i >> b & 1) << (bits - 1 - b);
  return result;
}

std::complex<double> input(std::uint64_t i) {
  return {static_cast<double>(random_element(kSeed, 2 * i)),
          static_cast<double>(random_element(kSeed, 2 * i + 1))};
}

std::complex<float> root(std::int64_t k, std::int64_t of) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(of);
  return {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
}

// A block is [length, 2]: real and imaginary parts.
std::complex<float> get(const float* block, std::int64_t i) {
  return {block[2 * i], block[2 * i + 1]};
}
void put(float* block, std::int64_t i, std::complex<float> value) {
  block[2 * i] = value.real();
  block[2 * i + 1] = value.imag();
}

const auto& fill_block() {
  static const auto kernel =
      Kernel("fill_block")
          .cpu([](Cpu&, std::int64_t bits, std::int64_t first, Out<float> block) {
            for (std::int64_t i = 0; i < block.dim(0); ++i)
              put(block.data(), i,
                  std::complex<float>(input(
                      reversed(static_cast<std::uint64_t>(first + i), static_cast<int>(bits)))));
          })
          .cost([](std::int64_t, std::int64_t, Out<float> block) {
            return Cost{0, 4.0 * static_cast<double>(block.size())};
          });
  return kernel;
}

// One stage within a block: butterflies of elements `half` apart.
const auto& butterflies() {
  static const auto kernel = Kernel("butterflies")
                                 .cpu([](Cpu&, std::int64_t half, InOut<float> block) {
                                   for (std::int64_t k = 0; k < half; ++k) {
                                     const auto factor = root(k, 2 * half);
                                     for (std::int64_t i = k; i < block.dim(0); i += 2 * half) {
                                       const auto a = get(block.data(), i),
                                                  b = factor * get(block.data(), i + half);
                                       put(block.data(), i, a + b);
                                       put(block.data(), i + half, a - b);
                                     }
                                   }
                                 })
                                 .cost([](std::int64_t, InOut<float> block) {
                                   return Cost{5.0 * static_cast<double>(block.dim(0)),
                                               8.0 * static_cast<double>(block.size())};
                                 });
  return kernel;
}

// One side of a stage between two blocks `half` apart: `to` is the upper or the lower one. `first`
// is the index of the upper block's first element within its run of `half`.
const auto& half_butterflies() {
  static const auto kernel =
      Kernel("half_butterflies")
          .cpu([](Cpu&, std::int64_t half, std::int64_t first, bool is_upper, In<float> upper,
                  In<float> lower, Out<float> to) {
            for (std::int64_t i = 0; i < to.dim(0); ++i) {
              const auto a = get(upper.data(), i);
              const auto b = root(first + i, 2 * half) * get(lower.data(), i);
              put(to.data(), i, is_upper ? a + b : a - b);
            }
          })
          .cost([](std::int64_t, std::int64_t, bool, In<float> upper, In<float>, Out<float>) {
            return Cost{8.0 * static_cast<double>(upper.dim(0)),
                        12.0 * static_cast<double>(upper.size())};
          });
  return kernel;
}

struct Size {
  std::int64_t n, length;
  std::size_t blocks;
  int bits;
};

Size size_of(const Context& context) {
  Size size{};
  size.bits = static_cast<int>(context.values.number("log2_n"));
  const std::int64_t log2_blocks = context.values.number("log2_blocks");
  if (log2_blocks > size.bits)
    throw std::invalid_argument("fft: log2_blocks = " + std::to_string(log2_blocks) +
                                " is more than log2_n = " + std::to_string(size.bits));
  size.n = std::int64_t{1} << size.bits;
  size.blocks = std::size_t{1} << log2_blocks;
  size.length = size.n >> log2_blocks;
  return size;
}

using Blocks = std::vector<Tensor<float>>;

void exchange(Blocks& blocks, const std::vector<Device>& owners, const Size& size,
              std::int64_t half, Counted& ops) {
  const auto distance = static_cast<std::size_t>(half / size.length);
  Blocks next;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const bool is_upper = (b & distance) == 0;
    const std::size_t upper = b & ~distance, lower = b | distance;
    const auto first = static_cast<std::int64_t>(upper % distance) * size.length;
    next.push_back(owners[b].tensor<float>({size.length, 2}));
    ops.submit(owners[b], half_butterflies(), half, first, is_upper, in(blocks[upper]),
               in(blocks[lower]), out(next.back()));
  }
  blocks = std::move(next);
}

// Against the sum that defines the transform. Each of the stages rounds a few times.
void check(const Blocks& blocks, const Size& size) {
  std::vector<std::complex<double>> roots, values;
  double power = 0;
  for (std::int64_t k = 0; k < size.n; ++k) {
    const double angle =
        -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size.n);
    roots.emplace_back(std::cos(angle), std::sin(angle));
    values.push_back(input(static_cast<std::uint64_t>(k)));
    power += std::norm(values.back());
  }
  const double bound = 4e-7 * (size.bits + 1) * std::sqrt(power);
  std::vector<HostArray<float>> here;
  for (const auto& block : blocks) here.push_back(block.to_host());
  const auto mask = static_cast<std::size_t>(size.n - 1);
  for (const std::size_t k : positions(static_cast<std::size_t>(size.n), kMostChecked)) {
    std::complex<double> expected = 0;
    for (std::size_t i = 0; i < values.size(); ++i) expected += values[i] * roots[i * k & mask];
    const auto length = static_cast<std::size_t>(size.length);
    const auto block = here[k / length].span();
    const std::size_t at = 2 * (k % length);
    expect_near("re", k, static_cast<double>(block[at]), expected.real(), bound);
    expect_near("im", k, static_cast<double>(block[at + 1]), expected.imag(), bound);
  }
}

Result run(const Context& context) {
  const Size size = size_of(context);
  Blocks blocks;
  std::vector<Device> owners;  // neighbours stay together: early partners are on one device
  for (std::size_t b = 0; b < size.blocks; ++b) {
    owners.push_back(context.devices[b * context.devices.size() / size.blocks]);
    blocks.push_back(owners[b].tensor<float>({size.length, 2}));
    owners[b].submit(fill_block(), std::int64_t{size.bits},
                     static_cast<std::int64_t>(b) * size.length, out(blocks[b]));
  }
  Counted ops;
  Result result;
  result.seconds = timed(context.runtime, [&] {
    for (std::int64_t half = 1; half < size.n; half *= 2) {
      if (half < size.length)
        for (std::size_t b = 0; b < size.blocks; ++b)
          ops.submit(owners[b], butterflies(), half, inout(blocks[b]));
      else
        exchange(blocks, owners, size, half, ops);
    }
    for (const auto& block : blocks) block.future().wait();
  });
  const auto n = static_cast<double>(size.n);
  result.flops = 5 * n * size.bits;
  result.bytes = 8 * n * std::countr_zero(size.blocks);
  result.ops = ops.ops();
  result.check = checked(context.runtime, "frequencies against the defining sum",
                         [&] { check(blocks, size); });
  return result;
}

}  // namespace

Workload fft_workload() {
  return {"fft",
          "a radix-2 Fourier transform, blocks exchanged between partners in the late stages",
          {number("log2_n", 12, 1, 30, "2^log2_n complex numbers"),
           number("log2_blocks", 3, 0, 16, "in 2^log2_blocks blocks")},
          {fill_block().code(), butterflies().code(), half_butterflies().code()},
          run};
}

}  // namespace weft::workloads
