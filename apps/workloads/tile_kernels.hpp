#pragma once

#include <cstdint>

#include "framework/kernel.hpp"

namespace weft::workloads {

/// The kernels of matrices in tiles, for `T` float or double, each with a variant for sockets and,
/// in a weft with the CUDA engine, one for GPUs. Tiles are row-major.

/// c += factor * a·b, or a·bᵀ: a of [m, k], b of [k, n] or [n, k], c of [m, n].
template <class T = float>
const Kernel<T, bool, In<T>, In<T>, InOut<T>>& add_product();

/// c += factor * a·aᵀ in c's lower triangle; what is above it may be anything afterwards.
template <class T = float>
const Kernel<T, In<T>, InOut<T>>& add_square();

/// a, symmetric and positive definite, of which the lower triangle counts, becomes its lower
/// Cholesky factor, zeros above the diagonal. Another fails on a socket; on a CUDA device its
/// diagonal becomes NaN, for the device alone knows it and nobody waits for that.
template <class T = float>
const Kernel<InOut<T>>& factor();

/// b becomes x with x·lᵀ = b, for a lower l.
template <class T = float>
const Kernel<In<T>, InOut<T>>& solve();

/// A tile of the matrix whose element (i, j) is `random_element(seed, i * n + j)`. Order: seed, n,
/// first row, first column, tile.
template <class T = float>
const Kernel<std::uint64_t, std::int64_t, std::int64_t, std::int64_t, Out<T>>& random_tile();

/// Row `i` of a tile.
template <class T = float>
const Kernel<std::int64_t, In<T>, Out<T>>& take_row();

/// A tile of the matrix of `definite_element`. Order: n, first row, first column, tile.
template <class T = float>
const Kernel<std::int64_t, std::int64_t, std::int64_t, Out<T>>& definite_tile();

/// Of the random numbers in `definite_element`.
inline constexpr std::uint64_t kDefiniteSeed = 3;
/// Element (i, j) of a symmetric n x n matrix whose diagonal outweighs the rest of its row:
/// positive definite. Off the diagonal in [-1, 1).
template <class T = float>
T definite_element(std::int64_t n, std::int64_t i, std::int64_t j);

}  // namespace weft::workloads
