// Products on a CUDA device against their definition in double precision.
#include <cmath>
#include <random>

#include "actors/cuda/blas.hpp"
#include "actors/cuda/gemm_plan.hpp"
#include "actors/cuda/plain_cuda.hpp"
#include "framework/failure.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

namespace weft::cuda {
namespace {

using test::DeviceArray;
using test::PlainCuda;

struct Case {
  std::int64_t m, n, k;
  std::int64_t more_a = 0, more_b = 0, more_c = 0;  // elements between rows
  std::size_t shift = 0;                            // elements that pointers lie behind 256 bytes
};

template <class T>
std::vector<T> random_values(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<T> unit(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) value = unit(random);
  return values;
}

// Largest error of `is` in units of what the sums of absolute values allow; rows apart stay as they
// were.
template <class T>
void check_product(PlainCuda& cuda, const Case& shape, bool ta, bool tb, T alpha, T beta,
                   Epilogue epilogue, double allowed) {
  INFO("m " << shape.m << " n " << shape.n << " k " << shape.k << " apart " << shape.more_a << " "
            << shape.more_b << " " << shape.more_c << " shift " << shape.shift << " transposed "
            << ta << tb << " alpha " << alpha << " beta " << beta << " epilogue " << int(epilogue)
            << " bytes " << sizeof(T));
  Gemm<T> product;
  product.transpose_a = ta;
  product.transpose_b = tb;
  product.m = shape.m;
  product.n = shape.n;
  product.k = shape.k;
  product.alpha = alpha;
  product.beta = beta;
  product.epilogue = epilogue;
  product.lda = (ta ? shape.m : shape.k) + shape.more_a;
  product.ldb = (tb ? shape.k : shape.n) + shape.more_b;
  product.ldc = shape.n + shape.more_c;
  const auto size = [](std::int64_t rows, std::int64_t distance) {
    return static_cast<std::size_t>(rows * distance);
  };
  const auto a = random_values<T>(size(ta ? shape.k : shape.m, product.lda), 1);
  const auto b = random_values<T>(size(tb ? shape.n : shape.k, product.ldb), 2);
  auto c = random_values<T>(size(shape.m, product.ldc), 3);
  const auto bias = random_values<T>(static_cast<std::size_t>(shape.n), 4);
  const std::vector<T> before = c;
  if (beta == 0)  // what was there must not matter
    for (std::int64_t i = 0; i < shape.m; ++i)
      for (std::int64_t j = 0; j < shape.n; ++j)
        c[size(i, product.ldc) + static_cast<std::size_t>(j)] = std::nan("");
  const DeviceArray<T> da(a, shape.shift), db(b, shape.shift), dc(c, shape.shift),
      dbias(bias, shape.shift);
  product.a = da.data();
  product.b = db.data();
  product.c = dc.data();
  product.bias = dbias.data();
  gemm(cuda, product);
  cuda.synchronise();
  const auto is = dc.values();
  const bool with_bias = epilogue == Epilogue::Bias || epilogue == Epilogue::ReluBias;
  const bool with_relu = epilogue == Epilogue::Relu || epilogue == Epilogue::ReluBias;
  double worst = 0;
  for (std::int64_t i = 0; i < shape.m; ++i)
    for (std::int64_t j = 0; j < product.ldc; ++j) {
      const std::size_t at = size(i, product.ldc) + static_cast<std::size_t>(j);
      if (j >= shape.n) {
        REQUIRE(is[at] == before[at]);
        continue;
      }
      double sum = 0, magnitude = 1;
      for (std::int64_t p = 0; p < shape.k; ++p) {
        const double x =
            a[static_cast<std::size_t>(ta ? p * product.lda + i : i * product.lda + p)];
        const double y =
            b[static_cast<std::size_t>(tb ? j * product.ldb + p : p * product.ldb + j)];
        sum += x * y;
        magnitude += std::abs(x * y);
      }
      double wanted = double(alpha) * sum + (beta == 0 ? 0 : double(beta) * before[at]);
      if (with_bias) wanted += bias[static_cast<std::size_t>(j)];
      if (with_relu) wanted = std::max(wanted, 0.0);
      const double error = std::abs(double(is[at]) - wanted) / magnitude;
      worst = std::max(worst, std::isnan(error) ? 1e300 : error);
    }
  CHECK(worst < allowed);
}

const std::vector<Case> kCases = {{1, 1, 1},
                                  {3, 5, 7},
                                  {64, 64, 64},
                                  {257, 129, 65},
                                  {128, 256, 792},
                                  {785, 33, 100},
                                  {31, 10, 257},
                                  {64, 48, 32, 4, 8, 12},
                                  {64, 48, 32, 1, 3, 5},
                                  {40, 24, 56, 0, 0, 0, 1},
                                  {40, 24, 56, 4, 4, 4, 4},
                                  {1, 300, 2},
                                  {300, 1, 129}};

TEST_CASE("products of floats equal their definition, however the matrices lie", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  for (const Case& shape : kCases)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const auto& [alpha, beta] : {std::pair{1.0f, 0.0f}, {-0.5f, 1.0f}, {2.0f, 0.25f}})
          check_product<float>(cuda, shape, ta, tb, alpha, beta, Epilogue::None, 1e-6);
}

TEST_CASE("products of doubles keep double precision", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  for (const Case& shape : kCases)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        check_product<double>(cuda, shape, ta, tb, -0.5, ta ? 1.0 : 0.0, Epilogue::None, 1e-14);
}

TEST_CASE("the precision asked for is the precision of a product", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  const Case shape{128, 128, 256};
  check_product<float>(cuda, shape, false, false, 1, 0, Epilogue::None, 1e-6);
  cuda.set_precision(Precision::Tf32);
  for (const bool transposed : {false, true})
    check_product<float>(cuda, shape, transposed, !transposed, 1, 0, Epilogue::None, 2e-3);
  cuda.set_precision(Precision::Bf16);
  for (const bool transposed : {false, true})
    check_product<float>(cuda, shape, transposed, !transposed, 1, 0, Epilogue::None, 2e-2);
  cuda.set_precision(Precision::Fp32);  // the remembered plans of the others are not taken
  check_product<float>(cuda, shape, false, false, 1, 0, Epilogue::None, 1e-6);
}

TEST_CASE("bias and rectifier are applied where the product is stored", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  for (const auto epilogue : {Epilogue::Relu, Epilogue::Bias, Epilogue::ReluBias})
    for (const Case& shape : {Case{64, 64, 32}, Case{33, 17, 9}, Case{256, 264, 792, 0, 0, 8},
                              Case{20, 30, 0}, Case{48, 40, 24, 0, 0, 0, 1}})
      for (const bool transposed : {false, true}) {
        check_product<float>(cuda, shape, transposed, transposed, 1, 0, epilogue, 1e-6);
        check_product<double>(cuda, shape, transposed, false, 1, 0.5, epilogue, 1e-14);
      }
}

TEST_CASE("a product over nothing scales, and one of nothing does nothing", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  for (const Case& shape : {Case{0, 5, 3}, Case{5, 0, 3}, Case{0, 0, 0}, Case{7, 5, 0, 1, 1, 3}})
    for (const float beta : {0.0f, 1.0f, -2.0f}) {
      check_product<float>(cuda, shape, false, false, 1, beta, Epilogue::None, 1e-6);
      check_product<double>(cuda, shape, true, true, 1, double(beta), Epilogue::None, 1e-14);
    }
}

TEST_CASE("one call gives the same bits each time", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  const auto a = random_values<float>(256 * 792, 1), b = random_values<float>(792 * 256, 2);
  const DeviceArray<float> da(a), db(b), c(256 * 264), d(256 * 264);
  for (const auto& into : {&c, &d}) {
    Gemm<float> product;
    product.m = 256;
    product.n = 256;
    product.k = 792;
    product.a = da.data();
    product.lda = 792;
    product.b = db.data();
    product.ldb = 256;
    product.c = into->data();
    product.ldc = 264;
    gemm(cuda, product);
  }
  cuda.synchronise();
  const auto first = c.values(), second = d.values();
  for (std::size_t i = 0; i < first.size(); ++i)
    if (i % 264 < 256) REQUIRE(first[i] == second[i]);
}

TEST_CASE("extents that do not fit are refused with their values", "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  PlainCuda cuda;
  Gemm<float> product;
  product.m = 4;
  product.n = 5;
  product.k = 6;
  product.lda = 5;
  product.ldb = 5;
  product.ldc = 5;
  CHECK_THROWS_WITH(gemm(cuda, product), contains_text("lda is 5, and must be at least 6"));
  product.lda = 6;
  product.epilogue = Epilogue::Bias;
  CHECK_THROWS_WITH(gemm(cuda, product), contains_text("needs a bias"));
}

// What is tried goes nowhere, and what wins is as right as what was recommended.
TEST_CASE("products stay right while faster algorithms are looked for, and end with a decision",
          "[cuda][gpu]") {
  WEFT_NEEDS_GPU();
  for (const Precision precision : {Precision::Fp32, Precision::Tf32}) {
    PlainCuda cuda;
    cuda.tune_products();
    cuda.set_precision(precision);
    const double allowed = precision == Precision::Fp32 ? 1e-6 : 2e-3;
    for (const auto& [beta, epilogue] :
         {std::pair{0.0f, Epilogue::Relu}, std::pair{1.0f, Epilogue::None}}) {
      const Case shape{512, 320, 256};
      std::uint64_t before = undecided_products();
      int calls = 0;
      do {
        before = undecided_products();
        check_product<float>(cuda, shape, false, false, 1, beta, epilogue, allowed);
        ++calls;
      } while (undecided_products() > before && calls < 400);
      INFO(calls << " calls");
      CHECK(calls > 64);
      CHECK(calls < 400);
    }
    // Too small to be worth it.
    const std::uint64_t before = undecided_products();
    check_product<float>(cuda, {64, 64, 64}, false, false, 1, 0, Epilogue::None, allowed);
    CHECK(undecided_products() == before);
  }
}

}  // namespace
}  // namespace weft::cuda
