// The perceptron's cuda variants against its host variants, kernel by kernel, without a runtime.
#include <cmath>
#include <random>

#include "actors/cuda/variant_calls.hpp"
#include "apps/mlp/cuda_variants.hpp"
#include "apps/mlp/data_kernels.hpp"
#include "apps/mlp/layer_kernels.hpp"
#include "apps/mlp/layout.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

namespace weft::mlp {
namespace {

using test::call_both;
using test::PlainCuda;
using test::TwinTensor;

std::size_t size_of(const Shape& shape) {
  return static_cast<std::size_t>(shape.size());
}

std::vector<float> random_floats(std::size_t count, std::uint32_t seed, float limit = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> unit(-limit, limit);
  std::vector<float> values(count);
  for (float& value : values) value = unit(random);
  return values;
}

std::vector<std::uint8_t> random_bytes(std::size_t count, std::uint32_t below) {
  std::mt19937 random(count);
  std::vector<std::uint8_t> values(count);
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random() % below);
  return values;
}

// Largest difference, as a part of the largest number (and of `floor` at least).
template <class T>
double difference(const TwinTensor<T>& tensor, double floor = 1e-30) {
  const auto device = tensor.device();
  double worst = 0, largest = floor;
  for (std::size_t i = 0; i < device.size(); ++i) {
    const double error = std::abs(double(device[i]) - double(tensor.host()[i]));
    worst = std::max(worst, std::isnan(error) ? 1e300 : error);
    largest = std::max(largest, std::abs(double(tensor.host()[i])));
  }
  return worst / largest;
}

// The same for dh, without hidden units so near 0 that rounding decides whether they pass errors
// on.
double difference_of_errors(const TwinTensor<float>& dh, const TwinTensor<float>& h) {
  const auto errors = dh.device(), units = h.device();
  const auto rows = static_cast<std::size_t>(dh.shape()[0]),
             hidden = static_cast<std::size_t>(dh.shape()[1]),
             width = static_cast<std::size_t>(h.shape()[1]);
  double worst = 0, largest = 1e-30;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < hidden; ++j) {
      const float unit = h.host()[r * width + j];
      if (unit < 1e-4f && unit != 0) continue;
      const double wanted = dh.host()[r * hidden + j], is = errors[r * hidden + j];
      if (unit == 0 && is != 0 && units[r * width + j] < 1e-4f) continue;
      worst = std::max(worst, std::isnan(is) ? 1e300 : std::abs(is - wanted));
      largest = std::max(largest, std::abs(wanted));
    }
  return worst / largest;
}

// Rows of `extent` random numbers, a one, zeros.
std::vector<float> rows_with_one(std::int64_t rows, std::int64_t extent, std::uint32_t seed) {
  const std::int64_t width = row_with_one(extent);
  auto values = random_floats(static_cast<std::size_t>(rows * width), seed);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = extent; i < width; ++i)
      values[static_cast<std::size_t>(r * width + i)] = i == extent ? 1.0f : 0.0f;
  return values;
}

struct Case {
  std::int64_t rows, inputs, hidden, classes;
};

// Small and odd ones, those of the demo, and those without a head kernel of their own.
const std::vector<Case> kCases = {{1, 1, 1, 1},        {7, 30, 17, 5},      {100, 64, 32, 4},
                                  {0, 20, 40, 10},     {256, 784, 256, 10}, {96, 784, 256, 10},
                                  {250, 300, 128, 10}, {1, 255, 64, 10},    {700, 100, 300, 10},
                                  {300, 50, 1024, 16}, {500, 40, 4096, 10}, {33, 20, 1500, 7},
                                  {65, 20, 100, 30},   {1000, 10, 5000, 10}};

TEST_CASE("a step of the perceptron on a GPU gives the host's numbers", "[apps][cuda][gpu]") {
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  PlainCuda cuda;
  for (const Case& c : kCases) {
    INFO("rows " << c.rows << " inputs " << c.inputs << " hidden " << c.hidden << " classes "
                 << c.classes);
    const Shape shape_1{row_with_one(c.inputs), c.hidden},
        shape_2{row_with_one(c.hidden), c.classes};
    TwinTensor<float> x({c.rows, row_with_one(c.inputs)}, rows_with_one(c.rows, c.inputs, 1));
    TwinTensor<std::uint8_t> y(
        {c.rows}, random_bytes(static_cast<std::size_t>(c.rows), std::uint32_t(c.classes)));
    const float limit_1 = std::sqrt(3.0f / float(c.inputs)),
                limit_2 = std::sqrt(3.0f / float(c.hidden));
    TwinTensor<float> w1(shape_1, random_floats(size_of(shape_1), 2, limit_1)),
        w2(shape_2, random_floats(size_of(shape_2), 3, limit_2));
    const Shape shape_h{c.rows, row_with_one(c.hidden)};
    TwinTensor<float> h(shape_h, random_floats(size_of(shape_h), 4)), dz({c.rows, c.classes}),
        dh({c.rows, c.hidden});
    TwinTensor<double> score({2}, {0.25, 2});
    call_both(cuda, kernels::forward(), std::uint64_t(c.rows + 3), x, y, w1, w2, h, dz, dh, score);
    CHECK(difference(h) < 2e-6);
    CHECK(difference(dz) < 1e-5);
    CHECK(difference_of_errors(dh, h) < 1e-5);
    CHECK(score.device()[0] == Approx(score.host()[0]).epsilon(1e-5));
    CHECK(std::abs(score.device()[1] - score.host()[1]) <= 1 + 1e-3 * double(c.rows));

    TwinTensor<double> judged({2}, {0.0, 0.0});
    call_both(cuda, kernels::evaluate(), x, y, w1, w2, judged);
    CHECK(judged.device()[0] == Approx(judged.host()[0]).epsilon(1e-5));
    CHECK(std::abs(judged.device()[1] - judged.host()[1]) <= 1 + 1e-3 * double(c.rows));
  }
}

TEST_CASE("gradients and descent on a GPU give the host's numbers", "[apps][cuda][gpu]") {
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  PlainCuda cuda;
  for (const Case& c : kCases)
    for (const bool is_first : {true, false}) {
      const std::int64_t width = row_with_one(is_first ? c.inputs : c.hidden);
      const std::int64_t columns = is_first ? c.hidden : c.classes;
      INFO("rows " << c.rows << " width " << width << " columns " << columns);
      TwinTensor<float> a({c.rows, width}, random_floats(std::size_t(c.rows * width), 1)),
          d({c.rows, columns}, random_floats(std::size_t(c.rows * columns), 2));
      const double allowed = 3e-6;
      const double floor = std::sqrt(double(c.rows) + 1);
      for (const std::int64_t first : {std::int64_t{0}, width / 16 * 8}) {
        TwinTensor<float> g({width - first, columns});
        call_both(cuda, kernels::gradient(), first, a, d, g);
        CHECK(difference(g, floor) < allowed);
        const Shape shape{width, columns};
        for (const float momentum : {0.0f, 0.9f}) {
          TwinTensor<float> w(shape, random_floats(size_of(shape), 3)),
              v(momentum == 0 ? Shape{0} : shape,
                random_floats(momentum == 0 ? 0 : size_of(shape), 4));
          TwinTensor<float> part({width - first, columns},
                                 random_floats(std::size_t((width - first) * columns), 5));
          call_both(cuda, kernels::update(), 0.1f, momentum, first, part, w, v);
          CHECK(difference(w, 1) < 1e-6);
          CHECK(difference(v, 1) < 1e-6);
          call_both(cuda, kernels::descend(), 0.1f, momentum, a, d, w, v);
          CHECK(difference(w, floor) < allowed);
          CHECK(difference(v, floor) < allowed);
        }
      }
    }
}

TEST_CASE("both layers' gradients and steps at once on a GPU are the host's", "[apps][cuda][gpu]") {
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  PlainCuda cuda;
  for (const Case& c : kCases) {
    INFO("rows " << c.rows << " inputs " << c.inputs << " hidden " << c.hidden);
    const Shape shape_1{row_with_one(c.inputs), c.hidden},
        shape_2{row_with_one(c.hidden), c.classes};
    const auto matrix = [&](std::int64_t columns, int seed) {
      return TwinTensor<float>({c.rows, columns},
                               random_floats(std::size_t(c.rows * columns), seed));
    };
    TwinTensor<float> x = matrix(shape_1[0], 1), dh = matrix(c.hidden, 2),
                      h = matrix(shape_2[0], 3), dz = matrix(c.classes, 4);
    TwinTensor<float> g({shape_1.size() + shape_2.size()});
    call_both(cuda, kernels::gradients(), x, dh, h, dz, g);
    CHECK(difference(g, std::sqrt(double(c.rows) + 1)) < 3e-6);
    for (const float momentum : {0.0f, 0.9f}) {
      const auto weights = [](const Shape& shape, int seed) {
        return TwinTensor<float>(shape, random_floats(size_of(shape), seed));
      };
      const Shape none{0};
      TwinTensor<float> w1 = weights(shape_1, 5), w2 = weights(shape_2, 6),
                        v1 = weights(momentum == 0 ? none : shape_1, 7),
                        v2 = weights(momentum == 0 ? none : shape_2, 8);
      call_both(cuda, kernels::update_all(), 0.1f, momentum, g, w1, v1, w2, v2);
      for (auto* tensor : {&w1, &v1, &w2, &v2}) CHECK(difference(*tensor, 1) < 1e-6);
    }
  }
}

TEST_CASE("first weights, copies and zeros on a GPU are the host's to the bit",
          "[apps][cuda][gpu]") {
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  PlainCuda cuda;
  TwinTensor<float> w({792, 256}, std::vector<float>(792 * 256, 7.0f)), copied({792, 256});
  call_both(cuda, kernels::initialise(), std::uint64_t{5}, 0.0875f, std::int64_t{784}, w);
  CHECK(w.device() == w.host());
  call_both(cuda, kernels::copy(), w, copied);
  CHECK(copied.device() == w.host());
  call_both(cuda, kernels::zero(), w);
  CHECK(w.device() == w.host());
  TwinTensor<double> score({2}, {1, 2});
  call_both(cuda, kernels::no_score(), score);
  CHECK(score.device() == score.host());
}

TEST_CASE("minibatches made on a GPU are the host's", "[apps][cuda][gpu]") {
  WEFT_NEEDS_GPU();
  add_cuda_variants();
  PlainCuda cuda;
  for (const std::int64_t pixels : {1, 63, 784}) {
    const std::int64_t samples = 90, rows = 41;
    TwinTensor<float> offsets({pixels}, random_floats(std::size_t(pixels), 1));
    TwinTensor<std::uint8_t> images({samples, pixels},
                                    random_bytes(std::size_t(samples * pixels), 256)),
        labels({samples}, random_bytes(std::size_t(samples), 10));
    std::vector<std::uint32_t> some(std::size_t{90});
    for (std::size_t i = 0; i < some.size(); ++i) some[i] = std::uint32_t(i * 37 % 90);
    TwinTensor<std::uint32_t> order({samples}, some);
    TwinTensor<float> x({rows, row_with_one(pixels)});
    TwinTensor<std::uint8_t> y({rows});
    call_both(cuda, kernels::load(), std::uint64_t{13}, 0.01f, offsets, images, labels, order, x,
              y);
    CHECK(difference(x) < 1e-6);
    CHECK(y.device() == y.host());

    const std::int64_t bytes = record_bytes(pixels);
    const std::int64_t all = rows + 12;  // of other steps too
    TwinTensor<std::uint8_t> records({all, bytes}, random_bytes(std::size_t(all * bytes), 256));
    call_both(cuda, kernels::normalise(), std::uint64_t{7}, 0.01f, offsets, records, x, y);
    CHECK(difference(x) < 1e-6);
    CHECK(y.device() == y.host());
  }
}

}  // namespace
}  // namespace weft::mlp
