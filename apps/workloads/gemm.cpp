// A tiled matrix product. Tiles are distributed block-cyclically; the tiles of the factors travel
// to the owners of the tiles of the product.
#include <cmath>
#include <limits>

#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/tiles.hpp"

namespace weft::workloads {
namespace {

constexpr std::uint64_t kSeedA = 1, kSeedB = 2;
constexpr std::size_t kMostChecked = 1 << 16;

void make_factor(Tiles& tiles, const BlockCyclic& grid, std::int64_t n, std::int64_t tile,
                 std::uint64_t seed) {
  tiles.make([](std::int64_t, std::int64_t) { return true; },
             [&](std::int64_t i, std::int64_t j) {
               const Device& device = grid.owner(i, j);
               auto made = device.tensor<float>({tiles.extent(i), tiles.extent(j)});
               device.submit(random_tile(), seed, n, i * tile, j * tile, out(made));
               return made;
             });
}

// Each element is a dot product; the bound holds for every order of summation (Higham, Accuracy
// and Stability of Numerical Algorithms, 3.1).
void check(const std::vector<float>& c, std::int64_t n) {
  const auto width = static_cast<std::uint64_t>(n);
  const double rounding = static_cast<double>(n + 2) * std::numeric_limits<float>::epsilon();
  for (const std::size_t at : positions(c.size(), kMostChecked)) {
    const std::uint64_t row = at / width, column = at % width;
    double expected = 0, size = 0;
    for (std::uint64_t k = 0; k < width; ++k) {
      const double product = static_cast<double>(random_element(kSeedA, row * width + k)) *
                             static_cast<double>(random_element(kSeedB, k * width + column));
      expected += product;
      size += std::abs(product);
    }
    expect_near("c", at, static_cast<double>(c[at]), expected, rounding * size);
  }
}

Result run(const Context& context) {
  const std::int64_t n = context.values.number("n"), tile = context.values.number("tile");
  const BlockCyclic grid = tile_grid(context);
  Tiles a(n, tile), b(n, tile), c(n, tile);
  make_factor(a, grid, n, tile, kSeedA);
  make_factor(b, grid, n, tile, kSeedB);

  Counted ops;
  Result result;
  result.seconds = timed(context.runtime, [&] {
    c.make([](std::int64_t, std::int64_t) { return true; },
           [&](std::int64_t i, std::int64_t j) {
             auto product = grid.owner(i, j).matmul(a.at(i, 0), b.at(0, j));
             ops.add(1);
             return product;
           });
    for (std::int64_t k = 1; k < c.count(); ++k)
      for (std::int64_t i = 0; i < c.count(); ++i)
        for (std::int64_t j = 0; j < c.count(); ++j)
          ops.submit(grid.owner(i, j), add_product(), 1.0f, false, in(a.at(i, k)), in(b.at(k, j)),
                     inout(c.at(i, j)));
    c.wait();
  });
  result.flops = 2 * std::pow(static_cast<double>(n), 3);
  result.ops = ops.ops();
  result.check =
      checked(context.runtime, "elements against dot products", [&] { check(c.to_host(), n); });
  return result;
}

}  // namespace

Workload gemm_workload() {
  return {"gemm",
          "a tiled matrix product, tiles spread block-cyclically",
          {number("n", 192, 1, 1 << 16, "matrices are n x n"),
           number("tile", 64, 1, 1 << 14, "tiles are tile x tile"), placement_parameter()},
          {kernels::matmul().code(), add_product().code(), random_tile().code()},
          run};
}

}  // namespace weft::workloads
