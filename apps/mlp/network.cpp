#include "apps/mlp/network.hpp"

#include <cmath>

#include "apps/mlp/layer_kernels.hpp"
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

Network::Network(Device device, const Hyper& hyper)
    : device_(device),
      hyper_(hyper),
      w1_(device.tensor<float>(shape_1(hyper))),
      w2_(device.tensor<float>(shape_2(hyper))),
      v1_(device.tensor<float>(velocity_shape_1(hyper))),
      v2_(device.tensor<float>(velocity_shape_2(hyper))),
      score_(device.tensor<double>({2})) {}

void Network::initialise() {
  device_.submit(kernels::initialise(), stream(hyper_.seed, 1), limit_1(hyper_), out(w1_));
  device_.submit(kernels::initialise(), stream(hyper_.seed, 2), limit_2(hyper_), out(w2_));
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
  h_ = device_.tensor<float>({rows, extent(hyper_.hidden) + 1});
  dz_ = device_.tensor<float>({rows, extent(hyper_.classes)});
  dh_ = device_.tensor<float>({rows, extent(hyper_.hidden)});
  device_.submit(kernels::forward(), std::uint64_t{batch}, in(x_), in(shard.y), in(w1_), in(w2_),
                 out(h_), out(dz_), out(dh_), inout(score_));
}

Tensor<float> Network::gradient_2() const {
  auto gradient = device_.tensor<float>(w2_.shape());
  device_.submit(kernels::gradient(), in(h_), in(dz_), out(gradient));
  return gradient;
}

Tensor<float> Network::gradient_1() const {
  auto gradient = device_.tensor<float>(w1_.shape());
  device_.submit(kernels::gradient(), in(x_), in(dh_), out(gradient));
  return gradient;
}

Future Network::update_2(const Tensor<float>& gradient) const {
  return update(gradient, w2_, v2_);
}
Future Network::update_1(const Tensor<float>& gradient) const {
  return update(gradient, w1_, v1_);
}

Future Network::descend_2() const {
  return device_.submit(kernels::descend(), hyper_.rate, hyper_.momentum, in(h_), in(dz_),
                        inout(w2_), inout(v2_));
}

Future Network::descend_1() const {
  return device_.submit(kernels::descend(), hyper_.rate, hyper_.momentum, in(x_), in(dh_),
                        inout(w1_), inout(v1_));
}

Future Network::update(const Tensor<float>& gradient, const Tensor<float>& w,
                       const Tensor<float>& v) const {
  return device_.submit(kernels::update(), hyper_.rate, hyper_.momentum, in(gradient), inout(w),
                        inout(v));
}

void Network::reset_score() {
  device_.submit(kernels::no_score(), out(score_));
}

void Network::evaluate(const Shard& shard, const Tensor<double>& score) const {
  device_.submit(kernels::evaluate(), in(shard.x), in(shard.y), in(w1_), in(w2_), inout(score));
}

}  // namespace weft::mlp
