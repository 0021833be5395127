#pragma once

#include <cstdint>

#include "framework/kernel.hpp"

/// The mathematics of the two-layer perceptron. R rows of a shard, I inputs, H hidden, C classes;
/// all matrices row-major. Inputs x [R, P] and hidden h [R, Q] have a one behind their I or H
/// numbers and then zeros, P and Q being `row_with_one` of I and H; so w1 [P, H] and w2 [Q, C] hold
/// their layer's bias as row I or H, and the rows behind it stay zero.
namespace weft::mlp::kernels {

/// Weights uniform in ±`limit`, element i by (seed, i) alone; the bias and what lies behind it 0.
/// Order: seed, limit, rows of weights, w.
const Kernel<std::uint64_t, float, std::int64_t, Out<float>>& initialise();

/// `to = from`, on the device that runs it.
const Kernel<In<float>, Out<float>>& copy();

/// All zero.
const Kernel<Out<float>>& zero();

/// `{0, 0}`: the sums that `forward` and `evaluate` add to, as {loss, correct}.
const Kernel<Out<double>>& no_score();

/// One shard forward, and back as far as what each layer's gradient needs:
/// h = relu(x·w1), dz = (softmax(h·w2) - onehot(y)) / batch, dh = dz·w2ᵀ where h > 0.
/// `batch` counts the rows of all shards, so that gradients of shards just add up.
/// `score` gains the sum of the rows' cross-entropy and the number of right answers.
const Kernel<std::uint64_t, In<float>, In<std::uint8_t>, In<float>, In<float>, Out<float>,
             Out<float>, Out<float>, InOut<double>>&
forward();

/// g = rows `first` … of aᵀ·d, as many as g has: a part of a layer's gradient from the layer's
/// inputs a and its errors d.
const Kernel<std::int64_t, In<float>, In<float>, Out<float>>& gradient();

/// One SGD step of rows `first` … of w, as many as g has: v = momentum·v + g, w -= rate·v. Without
/// momentum v has no elements and g takes its place. Order: rate, momentum, first, g, w, v.
const Kernel<float, float, std::int64_t, In<float>, InOut<float>, InOut<float>>& update();

/// Both layers' gradients at once, one after the other in g: that of w1 from x and dh, then that of
/// w2 from h and dz. Order: x, dh, h, dz, g.
const Kernel<In<float>, In<float>, In<float>, In<float>, Out<float>>& gradients();

/// `update` of both layers with what `gradients` made. Order: rate, momentum, g, w1, v1, w2, v2.
const Kernel<float, float, In<float>, InOut<float>, InOut<float>, InOut<float>, InOut<float>>&
update_all();

/// `gradient` and `update` in one, where no other device has a part in the gradient: the update is
/// the product's own alpha and beta. Order: rate, momentum, a, d, w, v.
const Kernel<float, float, In<float>, In<float>, InOut<float>, InOut<float>>& descend();

/// Adds {loss, correct} of the samples x, y to `score`.
const Kernel<In<float>, In<std::uint8_t>, In<float>, In<float>, InOut<double>>& evaluate();

}  // namespace weft::mlp::kernels
