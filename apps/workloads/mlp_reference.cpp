#include "apps/workloads/mlp_reference.hpp"

#include <algorithm>
#include <cmath>

#include "apps/workloads/measured.hpp"

namespace weft::workloads {
namespace {

/// The perceptron as textbooks write it: weights with the bias as the last row, rectifier, softmax,
/// cross-entropy, stochastic gradient descent with momentum. One thread.
class Serial {
 public:
  Serial(const mlp::Dataset& data, const mlp::Hyper& hyper, const mlp::Parameters& start)
      : data_(data),
        hyper_(hyper),
        w1_(start.w1.begin(), start.w1.end()),
        w2_(start.w2.begin(), start.w2.end()),
        v1_(w1_.size()),
        v2_(w2_.size()) {}

  /// Trains on all samples; returns the sum of the cross-entropies.
  double train(const std::vector<std::uint32_t>& order) {
    double loss = 0;
    for (std::size_t first = 0; first < order.size(); first += hyper_.batch) {
      const std::size_t rows = std::min(hyper_.batch, order.size() - first);
      std::vector<double> g1(w1_.size()), g2(w2_.size());
      for (std::size_t row = 0; row < rows; ++row)
        loss += add_gradient(order[first + row], 1 / static_cast<double>(rows), g1, g2);
      descend(w1_, v1_, g1);
      descend(w2_, v2_, g2);
    }
    return loss;
  }

  [[nodiscard]] const std::vector<double>& w1() const { return w1_; }
  [[nodiscard]] const std::vector<double>& w2() const { return w2_; }

 private:
  // x·w for a layer; x has a one behind it.
  static std::vector<double> layer(const std::vector<double>& x, const std::vector<double>& w) {
    std::vector<double> y(w.size() / x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < y.size(); ++j) y[j] += x[i] * w[i * y.size() + j];
    return y;
  }
  static void add_outer(const std::vector<double>& x, const std::vector<double>& d,
                        std::vector<double>& g) {
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < d.size(); ++j) g[i * d.size() + j] += x[i] * d[j];
  }

  double add_gradient(std::size_t sample, double weight, std::vector<double>& g1,
                      std::vector<double>& g2) const {
    std::vector<double> x(hyper_.inputs + 1, 1.0);
    for (std::size_t p = 0; p < hyper_.inputs; ++p)
      x[p] =
          static_cast<double>(data_.normal.scale) * data_.train.images[sample * hyper_.inputs + p] +
          static_cast<double>(data_.normal.offsets[p]);
    std::vector<double> h = layer(x, w1_);
    for (double& value : h) value = std::max(value, 0.0);
    h.push_back(1);
    std::vector<double> d = layer(h, w2_);
    const double top = *std::max_element(d.begin(), d.end());
    double sum = 0;
    for (double& value : d) sum += value = std::exp(value - top);
    const std::size_t label = data_.train.labels[sample];
    const double loss = -std::log(d[label] / sum);
    for (double& value : d) value *= weight / sum;
    d[label] -= weight;

    std::vector<double> dh(hyper_.hidden);
    for (std::size_t i = 0; i < dh.size(); ++i) {
      if (!(h[i] > 0)) continue;
      for (std::size_t c = 0; c < d.size(); ++c) dh[i] += d[c] * w2_[i * d.size() + c];
    }
    add_outer(h, d, g2);
    add_outer(x, dh, g1);
    return loss;
  }

  void descend(std::vector<double>& w, std::vector<double>& v, const std::vector<double>& g) const {
    for (std::size_t i = 0; i < w.size(); ++i) {
      v[i] = static_cast<double>(hyper_.momentum) * v[i] + g[i];
      w[i] -= static_cast<double>(hyper_.rate) * v[i];
    }
  }

  const mlp::Dataset& data_;
  const mlp::Hyper& hyper_;
  std::vector<double> w1_, w2_, v1_, v2_;
};

void expect_weights(const char* what, const std::vector<float>& got,
                    const std::vector<double>& expected, double bound) {
  for (std::size_t i = 0; i < got.size(); ++i)
    expect_near(what, i, static_cast<double>(got[i]), expected[i], bound);
}

}  // namespace

std::string check_epoch(const mlp::Dataset& data, const mlp::Hyper& hyper,
                        const std::vector<std::uint32_t>& order, const mlp::Parameters& start,
                        const mlp::Parameters& end, double loss) {
  const double work = 6 * static_cast<double>(order.size()) *
                      static_cast<double>(start.w1.size() + start.w2.size());
  if (work > 2e9) {
    const double guessing = std::log(static_cast<double>(data.classes));
    if (!(loss < guessing))
      throw WrongResult("wrong result: loss is " + std::to_string(loss) + ", that of guessing is " +
                        std::to_string(guessing));
    return "checked: loss below that of guessing (too long for a serial reference)";
  }
  Serial serial(data, hyper, start);
  const double expected = serial.train(order) / static_cast<double>(order.size());
  // Rounding in fp32 at each step; a step moves weights by `rate`.
  const double steps =
      std::ceil(static_cast<double>(order.size()) / static_cast<double>(hyper.batch));
  const double bound = 1e-5 * (10 + steps);
  expect_near("loss", 0, loss, expected, bound);
  expect_weights("w1", end.w1, serial.w1(), bound);
  expect_weights("w2", end.w2, serial.w2(), bound);
  return "checked: weights and loss against serial training in double precision";
}

}  // namespace weft::workloads
