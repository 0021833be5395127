// The tiled Cholesky factorisation A = L·Lᵀ, right-looking: each step factors a diagonal tile,
// solves the tiles below it and updates all that remain. The program submits it in plain loops;
// what runs ahead follows from the tiles each op uses.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/tiles.hpp"

namespace weft::workloads {
namespace {

constexpr std::uint64_t kSeed = 3;
constexpr std::size_t kMostChecked = 1 << 16;

// Symmetric, and its diagonal outweighs the rest of its row: positive definite.
float element(std::int64_t n, std::int64_t i, std::int64_t j) {
  const auto low = static_cast<std::uint64_t>(std::min(i, j));
  const auto high = static_cast<std::uint64_t>(std::max(i, j));
  const float random = random_element(kSeed, high * static_cast<std::uint64_t>(n) + low);
  return i == j ? random + static_cast<float>(n) : random;
}

const auto& definite_tile() {
  static const auto kernel =
      Kernel("definite_tile")
          .cpu([](Cpu&, std::int64_t n, std::int64_t first_row, std::int64_t first_column,
                  Out<float> tile) {
            for (std::int64_t i = 0; i < tile.dim(0); ++i)
              for (std::int64_t j = 0; j < tile.dim(1); ++j)
                tile[static_cast<std::size_t>(i * tile.dim(1) + j)] =
                    element(n, first_row + i, first_column + j);
          })
          .cost([](std::int64_t, std::int64_t, std::int64_t, Out<float> tile) {
            return Cost{0, 4.0 * static_cast<double>(tile.size())};
          });
  return kernel;
}

// a becomes its own lower factor, zeros above the diagonal.
void factor_rows(float* a, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) {
    float* row = a + j * n;
    for (std::int64_t i = 0; i <= j; ++i) {
      float sum = row[i];
      for (std::int64_t k = 0; k < i; ++k) sum -= row[k] * a[i * n + k];
      if (i == j && !(sum > 0)) throw std::runtime_error("the matrix is not positive definite");
      row[i] = i == j ? std::sqrt(sum) : sum / a[i * n + i];
    }
    for (std::int64_t i = j + 1; i < n; ++i) row[i] = 0;
  }
}

const auto& factor() {
  static const auto kernel = Kernel("factor")
                                 .cpu([](Cpu&, InOut<float> a) { factor_rows(a.data(), a.dim(0)); })
                                 .cost([](InOut<float> a) {
                                   return Cost{std::pow(static_cast<double>(a.dim(0)), 3) / 3,
                                               8.0 * static_cast<double>(a.size())};
                                 });
  return kernel;
}

// b becomes x with x·lᵀ = b, for a lower l.
const auto& solve() {
  static const auto kernel =
      Kernel("solve")
          .cpu([](Cpu& cpu, In<float> l, InOut<float> b) {
            const std::int64_t n = l.dim(0);
            cpu.parallel_ranges(static_cast<std::size_t>(b.dim(0)), 16,
                                [&](std::size_t begin, std::size_t end) {
                                  for (std::size_t row = begin; row < end; ++row) {
                                    float* x = b.data() + static_cast<std::int64_t>(row) * n;
                                    for (std::int64_t j = 0; j < n; ++j) {
                                      float sum = x[j];
                                      for (std::int64_t k = 0; k < j; ++k)
                                        sum -= x[k] * l.data()[j * n + k];
                                      x[j] = sum / l.data()[j * n + j];
                                    }
                                  }
                                });
          })
          .cost([](In<float> l, InOut<float> b) {
            return Cost{static_cast<double>(b.size()) * static_cast<double>(l.dim(0)),
                        4.0 * static_cast<double>(l.size() + 2 * b.size())};
          });
  return kernel;
}

// |A - L·Lᵀ| is bounded element by element by (n + 1)·u·|L|·|Lᵀ| to first order, whatever the order
// of sums (Higham, Accuracy and Stability of Numerical Algorithms, 10.1).
void check(const std::vector<float>& l, std::int64_t n) {
  const double rounding = static_cast<double>(n + 4) * std::numeric_limits<float>::epsilon();
  for (const std::size_t at : positions(l.size(), kMostChecked)) {
    const auto i = static_cast<std::int64_t>(at) / n, j = static_cast<std::int64_t>(at) % n;
    if (j > i) {
      expect_near("l", at, static_cast<double>(l[at]), 0, 0);
      continue;
    }
    double product = 0, size = 0;
    for (std::int64_t k = 0; k <= j; ++k) {
      const double term = static_cast<double>(l[static_cast<std::size_t>(i * n + k)]) *
                          static_cast<double>(l[static_cast<std::size_t>(j * n + k)]);
      product += term;
      size += std::abs(term);
    }
    expect_near("l·lᵀ", at, product, static_cast<double>(element(n, i, j)), rounding * size);
  }
}

Result run(const Context& context) {
  const std::int64_t n = context.values.number("n"), tile = context.values.number("tile");
  const BlockCyclic grid = tile_grid(context);
  Tiles a(n, tile);
  a.make([](std::int64_t i, std::int64_t j) { return j <= i; },
         [&](std::int64_t i, std::int64_t j) {
           const Device& device = grid.owner(i, j);
           auto made = device.tensor<float>({a.extent(i), a.extent(j)});
           device.submit(definite_tile(), n, i * tile, j * tile, out(made));
           return made;
         });

  Counted ops;
  Result result;
  result.seconds = timed(context.runtime, [&] {
    const std::int64_t count = a.count();
    for (std::int64_t k = 0; k < count; ++k) {
      ops.submit(grid.owner(k, k), factor(), inout(a.at(k, k)));
      for (std::int64_t i = k + 1; i < count; ++i)
        ops.submit(grid.owner(i, k), solve(), in(a.at(k, k)), inout(a.at(i, k)));
      for (std::int64_t j = k + 1; j < count; ++j)
        for (std::int64_t i = j; i < count; ++i)
          ops.submit(grid.owner(i, j), add_product(), -1.0f, true, in(a.at(i, k)), in(a.at(j, k)),
                     inout(a.at(i, j)));
    }
    a.wait();
  });
  result.flops = std::pow(static_cast<double>(n), 3) / 3;
  result.ops = ops.ops();
  result.check = checked(context.runtime, "elements of L·Lᵀ against the matrix",
                         [&] { check(a.to_host(), n); });
  return result;
}

}  // namespace

Workload cholesky_workload() {
  return {"cholesky",
          "tiled Cholesky factorisation, right-looking, tiles spread block-cyclically",
          {number("n", 256, 1, 1 << 16, "the matrix is n x n"),
           number("tile", 64, 1, 1 << 14, "tiles are tile x tile"), placement_parameter()},
          {definite_tile().code(), factor().code(), solve().code(), add_product().code()},
          run};
}

}  // namespace weft::workloads
