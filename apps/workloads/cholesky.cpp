// The tiled Cholesky factorisation A = L·Lᵀ, right-looking: each step factors a diagonal tile,
// solves the tiles below it and updates all that remain. The program submits it in plain loops;
// what runs ahead follows from the tiles each op uses.
#include <cmath>
#include <limits>

#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/tiles.hpp"

namespace weft::workloads {
namespace {

constexpr std::size_t kMostChecked = 1 << 16;

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
    expect_near("l·lᵀ", at, product, double{definite_element(n, i, j)}, rounding * size);
  }
}

void fill(Tiles& a, const BlockCyclic& grid, std::int64_t n, std::int64_t tile) {
  for (std::int64_t i = 0; i < a.count(); ++i)
    for (std::int64_t j = 0; j <= i; ++j)
      grid.owner(i, j).submit(definite_tile(), n, i * tile, j * tile, out(a.at(i, j)));
}

void factorise(Tiles& a, const BlockCyclic& grid, Counted& ops) {
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
}

Result run(const Context& context) {
  const std::int64_t n = context.values.number("n"), tile = context.values.number("tile");
  const BlockCyclic grid = tile_grid(context);
  Tiles a(n, tile);
  a.make([](std::int64_t i, std::int64_t j) { return j <= i; },
         [&](std::int64_t i, std::int64_t j) {
           return grid.owner(i, j).tensor<float>({a.extent(i), a.extent(j)});
         });
  fill(a, grid, n, tile);

  Counted ops;
  Result result;
  if (planned(context)) {
    // Recording factorises once; the tiles are filled anew for the replay, which is measured.
    const Plan plan = context.runtime.record([&] { factorise(a, grid, ops); });
    fill(a, grid, n, tile);
    result.seconds = timed(context.runtime, [&] { plan.replay().wait(); });
  } else {
    result.seconds = timed(context.runtime, [&] {
      factorise(a, grid, ops);
      a.wait();
    });
  }
  result.flops = std::pow(static_cast<double>(n), 3) / 3;
  result.ops = ops.ops();
  result.check = checked(context.runtime, "elements of L·Lᵀ against the matrix", [&] {
    const auto l = a.to_host();
    check(l, n);
    result.digest = digest_of(l);
  });
  return result;
}

}  // namespace

Workload cholesky_workload() {
  return {"cholesky",
          "tiled Cholesky factorisation, right-looking, tiles spread block-cyclically",
          {number("n", 256, 1, 1 << 16, "the matrix is n x n"),
           number("tile", 64, 1, 1 << 14, "tiles are tile x tile"), placement_parameter(),
           plan_parameter()},
          {definite_tile().code(), factor().code(), solve().code(), add_product().code()},
          run};
}

}  // namespace weft::workloads
