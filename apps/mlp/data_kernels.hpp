#pragma once

#include <cstdint>

#include "framework/kernel.hpp"

namespace weft::mlp::kernels {

/// What is done to the data before training. N samples of P pixels.

/// `order` becomes a permutation of 0 … N-1 that depends on (seed, epoch) and N alone:
/// Fisher-Yates over SplitMix64 numbers.
const Kernel<std::uint64_t, std::uint64_t, Out<std::uint32_t>>& shuffle();

/// `order` becomes 0 … N-1.
const Kernel<Out<std::uint32_t>>& in_order();

/// `part` becomes the numbers of `order` from `first` on, as many as it has.
const Kernel<std::uint64_t, In<std::uint32_t>, Out<std::uint32_t>>& take();

/// Gathers one minibatch: rows `order[first] …` of images [N, P] and labels [N], as many as `x`
/// has. A pixel becomes `scale * pixel + offsets[place]`; x is [rows, row_with_one(P)] with a one
/// behind the pixels, which makes the bias of a layer a row of its weights, and zeros behind that.
/// Order: first, scale, offsets, images, labels, order, x, y.
const Kernel<std::uint64_t, float, In<float>, In<std::uint8_t>, In<std::uint8_t>, In<std::uint32_t>,
             Out<float>, Out<std::uint8_t>>&
load();

/// The first half of `load` where the second is another device's: the minibatch as records
/// [rows, record_bytes(P)], a quarter of the bytes of x. Order: first, images, labels, order,
/// records.
const Kernel<std::uint64_t, In<std::uint8_t>, In<std::uint8_t>, In<std::uint32_t>,
             Out<std::uint8_t>>&
gather();

/// The second half: x and y from records `first` … of those that there are. Order: first, scale,
/// offsets, records, x, y.
const Kernel<std::uint64_t, float, In<float>, In<std::uint8_t>, Out<float>, Out<std::uint8_t>>&
normalise();

}  // namespace weft::mlp::kernels
