#include "apps/mlp/network.hpp"

#include <algorithm>
#include <cmath>

#include "apps/mlp/layer_kernels.hpp"
#include "apps/mlp/layout.hpp"
#include "apps/mlp/random.hpp"

namespace weft::mlp {
namespace {

std::int64_t extent(std::size_t count) {
  return static_cast<std::int64_t>(count);
}

// The range that keeps the variance from layer to layer (He et al., "Delving deep into rectifiers",
// 2015) for the first; the last layer has no rectifier behind it.
float limit_1(const Hyper& hyper) {
  return std::sqrt(6.0f / static_cast<float>(hyper.inputs));
}
float limit_2(const Hyper& hyper) {
  return std::sqrt(3.0f / static_cast<float>(hyper.hidden));
}

}  // namespace

Shape shape_1(const Hyper& hyper) {
  return {extent(hyper.inputs) + 1, extent(hyper.hidden)};
}
Shape shape_2(const Hyper& hyper) {
  return {extent(hyper.hidden) + 1, extent(hyper.classes)};
}
Shape velocity_shape_1(const Hyper& hyper) {
  return hyper.momentum == 0 ? Shape{0} : shape_1(hyper);
}
Shape velocity_shape_2(const Hyper& hyper) {
  return hyper.momentum == 0 ? Shape{0} : shape_2(hyper);
}

Shape stored_shape_1(const Hyper& hyper) {
  return {row_with_one(extent(hyper.inputs)), extent(hyper.hidden)};
}
Shape stored_shape_2(const Hyper& hyper) {
  return {row_with_one(extent(hyper.hidden)), extent(hyper.classes)};
}
Shape stored_velocity_shape_1(const Hyper& hyper) {
  return hyper.momentum == 0 ? Shape{0} : stored_shape_1(hyper);
}
Shape stored_velocity_shape_2(const Hyper& hyper) {
  return hyper.momentum == 0 ? Shape{0} : stored_shape_2(hyper);
}

std::vector<Part> gradient_parts(const Hyper& hyper) {
  // Smaller parts cost more in messages than they hide; more parts than a few hide nothing more.
  constexpr std::size_t kBytes = 256 << 10, kMost = 4;
  const Shape first = stored_shape_1(hyper), second = stored_shape_2(hyper);
  const std::size_t bytes = static_cast<std::size_t>(first.size()) * sizeof(float);
  const auto count = static_cast<std::int64_t>(std::clamp<std::size_t>(bytes / kBytes, 1, kMost));
  std::vector<Part> parts{{2, 0, second[0]}};
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int64_t blocks = first[0] / kRowMultiple;  // parts are aligned as rows are
    const std::int64_t from = blocks * p / count * kRowMultiple,
                       to = blocks * (p + 1) / count * kRowMultiple;
    parts.push_back({1, from, to - from});
  }
  return parts;
}

Network::Network(Device device, const Hyper& hyper)
    : device_(device),
      hyper_(hyper),
      w1_(device.tensor<float>(stored_shape_1(hyper))),
      w2_(device.tensor<float>(stored_shape_2(hyper))),
      v1_(device.tensor<float>(stored_velocity_shape_1(hyper))),
      v2_(device.tensor<float>(stored_velocity_shape_2(hyper))),
      score_(device.tensor<double>({2})) {}

void Network::initialise() {
  device_.submit(kernels::initialise(), stream(hyper_.seed, 1), limit_1(hyper_),
                 extent(hyper_.inputs), out(w1_));
  device_.submit(kernels::initialise(), stream(hyper_.seed, 2), limit_2(hyper_),
                 extent(hyper_.hidden), out(w2_));
  device_.submit(kernels::zero(), out(v1_));
  device_.submit(kernels::zero(), out(v2_));
}

void Network::set(const Tensor<float>& w1, const Tensor<float>& w2, const Tensor<float>& v1,
                  const Tensor<float>& v2) {
  device_.submit(kernels::copy(), in(w1), out(w1_));
  device_.submit(kernels::copy(), in(w2), out(w2_));
  device_.submit(kernels::copy(), in(v1), out(v1_));
  device_.submit(kernels::copy(), in(v2), out(v2_));
}

void Network::forward(const Shard& shard, std::size_t batch) {
  const std::int64_t rows = shard.x.shape()[0];
  x_ = shard.x;
  h_ = device_.tensor<float>({rows, row_with_one(extent(hyper_.hidden))});
  dz_ = device_.tensor<float>({rows, extent(hyper_.classes)});
  dh_ = device_.tensor<float>({rows, extent(hyper_.hidden)});
  device_.submit(kernels::forward(), std::uint64_t{batch}, in(x_), in(shard.y), in(w1_), in(w2_),
                 out(h_), out(dz_), out(dh_), inout(score_));
}

Tensor<float> Network::gradient(const Part& part) const {
  const bool is_first = part.layer == 1;
  const std::int64_t width = (is_first ? w1_ : w2_).shape()[1];
  auto gradient = device_.tensor<float>({part.rows, width});
  device_.submit(kernels::gradient(), part.first, in(is_first ? x_ : h_), in(is_first ? dh_ : dz_),
                 out(gradient));
  return gradient;
}

Future Network::update(const Part& part, const Tensor<float>& gradient) const {
  const bool is_first = part.layer == 1;
  return device_.submit(kernels::update(), hyper_.rate, hyper_.momentum, part.first, in(gradient),
                        inout(is_first ? w1_ : w2_), inout(is_first ? v1_ : v2_));
}

Tensor<float> Network::gradients() const {
  auto gradients = device_.tensor<float>({w1_.size() + w2_.size()});
  device_.submit(kernels::gradients(), in(x_), in(dh_), in(h_), in(dz_), out(gradients));
  return gradients;
}

Future Network::update_all(const Tensor<float>& gradients) const {
  return device_.submit(kernels::update_all(), hyper_.rate, hyper_.momentum, in(gradients),
                        inout(w1_), inout(v1_), inout(w2_), inout(v2_));
}

Future Network::descend(int layer) const {
  const bool is_first = layer == 1;
  return device_.submit(kernels::descend(), hyper_.rate, hyper_.momentum, in(is_first ? x_ : h_),
                        in(is_first ? dh_ : dz_), inout(is_first ? w1_ : w2_),
                        inout(is_first ? v1_ : v2_));
}

void Network::reset_score() {
  device_.submit(kernels::no_score(), out(score_));
}

void Network::evaluate(const Shard& shard, const Tensor<double>& score) const {
  device_.submit(kernels::evaluate(), in(shard.x), in(shard.y), in(w1_), in(w2_), inout(score));
}

}  // namespace weft::mlp
