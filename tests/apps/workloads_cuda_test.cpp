// The cuda variants of the workloads' kernels against their cpu variants, one by one.
#include <cmath>
#include <limits>

#include "actors/cuda/variant_calls.hpp"
#include "apps/workloads/cuda_variants.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/stencil_kernels.hpp"
#include "apps/workloads/tile_kernels.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

namespace weft::workloads {
namespace {

using test::call_both;
using test::TwinTensor;

template <class T>
std::vector<T> values(std::int64_t count, std::uint64_t seed) {
  std::vector<T> made;
  for (std::int64_t i = 0; i < count; ++i)
    made.push_back(T{random_element(seed, static_cast<std::uint64_t>(i))});
  return made;
}

template <class T>
std::vector<T> definite(std::int64_t n) {
  std::vector<T> made;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) made.push_back(definite_element<T>(n, i, j));
  return made;
}

// Both variants have left about the same; `lower` looks at and below the diagonal only.
template <class T>
void check_same(const TwinTensor<T>& tensor, double bound, bool lower = false) {
  const auto there = tensor.device();
  const std::int64_t width = tensor.shape().rank() > 1 ? tensor.shape()[1] : 1;
  for (std::size_t at = 0; at < there.size(); ++at) {
    const auto i = static_cast<std::int64_t>(at) / width, j = static_cast<std::int64_t>(at) % width;
    if (lower && j > i) continue;
    const double expected = double{tensor.host()[at]}, got = double{there[at]};
    INFO("element " << i << ", " << j);
    if (!(std::abs(got - expected) <= bound)) {
      REQUIRE(got == expected);  // says both
    }
  }
}

TEMPLATE_TEST_CASE("tiles' kernels are the same on a GPU", "[gpu]", float, double) {
  using T = TestType;
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  test::PlainCuda cuda;
  const double unit = double{std::numeric_limits<T>::epsilon()};
  for (const std::int64_t n : {1, 7, 64, 200, 515, 1024}) {
    const std::int64_t rows = n / 2 + 3;
    INFO("n = " << n);

    TwinTensor<T> tile({rows, n});
    call_both(cuda, random_tile<T>(), std::uint64_t{9}, std::int64_t{1000}, std::int64_t{5},
              std::int64_t{70}, tile);
    check_same(tile, 0);
    TwinTensor<T> on_diagonal({n, n}), below({rows, n});
    call_both(cuda, definite_tile<T>(), std::int64_t{4000}, std::int64_t{n}, std::int64_t{n},
              on_diagonal);
    check_same(on_diagonal, 0);
    call_both(cuda, definite_tile<T>(), std::int64_t{4000}, std::int64_t{2 * n}, std::int64_t{n},
              below);
    check_same(below, 0);

    TwinTensor<T> a({n, n}, definite<T>(n));
    call_both(cuda, factor<T>(), a);
    check_same(a, 40 * unit * std::sqrt(static_cast<double>(n)) * static_cast<double>(n));

    TwinTensor<T> x({rows, n}, values<T>(rows * n, 4));
    call_both(cuda, solve<T>(), a, x);
    check_same(x, 100 * unit * static_cast<double>(n));

    TwinTensor<T> c({rows, n}, values<T>(rows * n, 5)), left({rows, n}, values<T>(rows * n, 6)),
        right({n, n}, values<T>(n * n, 7)), square({n, n}, values<T>(n * n, 8));
    for (const bool is_transposed : {false, true})
      call_both(cuda, add_product<T>(), T{-1}, is_transposed, left, right, c);
    check_same(c, 8 * unit * static_cast<double>(n + 2));
    call_both(cuda, add_square<T>(), T{-1}, right, square);
    // Its diagonal is a sum of positive terms: n / 3 of them in the mean.
    check_same(square, 2 * unit * std::sqrt(static_cast<double>(n)) * static_cast<double>(n + 2),
               true);

    TwinTensor<T> row({n});
    call_both(cuda, take_row<T>(), rows - 1, left, row);
    check_same(row, 0);
  }
}

TEMPLATE_TEST_CASE("a matrix that is not positive definite leaves NaN on a GPU", "[gpu]", float,
                   double) {
  using T = TestType;
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  constexpr std::int64_t kN = 300;
  auto numbers = definite<T>(kN);
  numbers[static_cast<std::size_t>(17 * kN + 17)] = -1;
  test::PlainCuda cuda;
  TwinTensor<T> a({kN, kN}, numbers);
  CHECK_THROWS_WITH(test::call_one(cuda, false, factor<T>(), a),
                    "the matrix is not positive definite");
  test::call_one(cuda, true, factor<T>(), a);
  const auto l = a.device();
  for (std::int64_t i = 0; i < kN; ++i)
    REQUIRE(std::isnan(l[static_cast<std::size_t>(i * (kN + 1))]));
}

TEST_CASE("the stencil's kernels are the same on a GPU", "[gpu]") {
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  test::PlainCuda cuda;
  for (const std::int64_t n : {1, 5, 127, 128, 129, 300})
    for (const std::int64_t rows : {1, 2, 7, 8, 9, 33}) {
      INFO("strip of " << rows << " x " << n);
      TwinTensor<float> strip({rows, n}), top({n}), bottom({n}), next({rows, n});
      call_both(cuda, fill_strip(), std::int64_t{11}, strip);
      check_same(strip, 0);
      call_both(cuda, edges(), strip, top, bottom);
      check_same(top, 0);
      check_same(bottom, 0);
      TwinTensor<float> above({n}, values<float>(n, 1)), below({n}, values<float>(n, 2));
      call_both(cuda, relax(), strip, above, below, next);
      check_same(next, 2e-7);  // products may be rounded before they are added, or not
    }
}

}  // namespace
}  // namespace weft::workloads
