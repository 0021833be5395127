#include "apps/bench/tiled_cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <weft/weft.hpp>

#include "apps/bench/cholesky_order.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/tile_kernels.hpp"

namespace weft::bench {

template <class T>
TiledCholesky<T>::TiledCholesky(std::int64_t n, std::int64_t tile)
    : n_(n), tile_(tile), count_((n + tile - 1) / tile) {}

template <class T>
std::int64_t TiledCholesky<T>::extent(std::int64_t i) const {
  return std::min(tile_, n_ - i * tile_);
}

template <class T>
const Tensor<T>& TiledCholesky<T>::at(std::int64_t i, std::int64_t j) const {
  return tiles_[static_cast<std::size_t>(i * (i + 1) / 2 + j)];
}

template <class T>
void TiledCholesky<T>::make(const Device& device) {
  if (tiles_.empty())
    for (std::int64_t i = 0; i < count_; ++i)
      for (std::int64_t j = 0; j <= i; ++j)
        tiles_.push_back(device.tensor<T>({extent(i), extent(j)}));
  for (std::int64_t i = 0; i < count_; ++i)
    for (std::int64_t j = 0; j <= i; ++j)
      device.submit(workloads::definite_tile<T>(), n_, i * tile_, j * tile_, out(at(i, j)));
}

template <class T>
std::uint64_t TiledCholesky<T>::factor(const Device& device, std::int64_t panel) {
  using Kind = CholeskyStep::Kind;
  std::uint64_t ops = 0;
  for_each_step(count_, panel, [&](const CholeskyStep& step) {
    const auto [kind, i, j, k] = step;
    ++ops;
    switch (kind) {
      case Kind::Factor:
        device.submit(workloads::factor<T>(), inout(at(j, j)));
        break;
      case Kind::Solve:
        device.submit(workloads::solve<T>(), in(at(j, j)), inout(at(i, j)));
        break;
      case Kind::Product:
        device.submit(workloads::add_product<T>(), T{-1}, true, in(at(i, k)), in(at(j, k)),
                      inout(at(i, j)));
        break;
      case Kind::Square:
        device.submit(workloads::add_square<T>(), T{-1}, in(at(j, k)), inout(at(j, j)));
        break;
    }
  });
  return ops;
}

// Every step leads to the last factor.
template <class T>
void TiledCholesky<T>::wait() const {
  tiles_.back().future().wait();
}

template <class T>
std::vector<T> TiledCholesky<T>::row(const Device& device, std::int64_t i) const {
  std::vector<HostArray<T>> parts;
  for (std::int64_t j = 0; j <= i / tile_; ++j) {
    const auto part = device.tensor<T>({extent(j)});
    device.submit(workloads::take_row<T>(), i % tile_, in(at(i / tile_, j)), out(part));
    parts.push_back(part.to_host());
  }
  std::vector<T> whole;
  for (const HostArray<T>& part : parts) {
    const auto values = part.span();
    whole.insert(whole.end(), values.begin(), values.end());
  }
  return whole;
}

// |A - L·Lᵀ| is bounded element by element by (n + 1)·u·|L|·|Lᵀ| to first order, whatever the order
// of sums (Higham, Accuracy and Stability of Numerical Algorithms, 10.1).
template <class T>
std::string TiledCholesky<T>::check(const Device& device) const {
  constexpr std::int64_t kRows = 24;
  std::vector<std::int64_t> rows;
  for (std::int64_t r = 0; r < std::min(kRows, n_); ++r)
    rows.push_back(n_ <= kRows ? r : r * (n_ - 1) / (kRows - 1));
  std::vector<std::vector<T>> l;
  for (const std::int64_t i : rows) l.push_back(row(device, i));
  if (!(l.back()[static_cast<std::size_t>(n_ - 1)] > 0))
    throw workloads::WrongResult(
        "wrong result: the matrix is not positive definite, says its factor");
  const double rounding = static_cast<double>(n_ + 4) * double{std::numeric_limits<T>::epsilon()};
  for (std::size_t a = 0; a < rows.size(); ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      double product = 0, size = 0;
      for (std::size_t k = 0; k <= static_cast<std::size_t>(rows[b]); ++k) {
        const double term = double{l[a][k]} * double{l[b][k]};
        product += term;
        size += std::abs(term);
      }
      workloads::expect_near("l·lᵀ", static_cast<std::size_t>(rows[a] * n_ + rows[b]), product,
                             double{workloads::definite_element<T>(n_, rows[a], rows[b])},
                             rounding * size);
    }
  return "checked: " + std::to_string(rows.size() * (rows.size() + 1) / 2) +
         " elements of L·Lᵀ against the matrix";
}

template class TiledCholesky<float>;
template class TiledCholesky<double>;

}  // namespace weft::bench
