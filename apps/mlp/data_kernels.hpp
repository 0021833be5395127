#pragma once

#include <cstdint>

#include "framework/kernel.hpp"

namespace weft::mlp::kernels {

/// What the socket does to the data. N samples of P pixels.

/// `order` becomes a permutation of 0 … N-1 that depends on (seed, epoch) and N alone:
/// Fisher-Yates over SplitMix64 numbers.
const Kernel<std::uint64_t, std::uint64_t, Out<std::uint32_t>>& shuffle();

/// `order` becomes 0 … N-1.
const Kernel<Out<std::uint32_t>>& in_order();

/// Gathers one minibatch: rows `order[first] …` of images [N, P] and labels [N], as many as `x`
/// has. A pixel becomes `scale * pixel + offsets[place]`; x is [rows, P + 1] with ones in its
/// last column, which makes the bias of a layer the last row of its weights. Order: first, scale,
/// offsets, images, labels, order, x, y.
const Kernel<std::uint64_t, float, In<float>, In<std::uint8_t>, In<std::uint8_t>, In<std::uint32_t>,
             Out<float>, Out<std::uint8_t>>&
load();

}  // namespace weft::mlp::kernels
