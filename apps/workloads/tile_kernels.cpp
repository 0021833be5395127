#include "apps/workloads/tile_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "apps/workloads/measured.hpp"
#include "framework/blas.hpp"

namespace weft::workloads {
namespace {

template <class T>
std::string named(const char* name) {
  return std::is_same_v<T, double> ? std::string(name) + "_f64" : name;
}

// In bytes, each element counted as often as `times`.
template <class View>
double bytes_of(const View& view, int times = 1) {
  return static_cast<double>(times) * static_cast<double>(view.size()) *
         static_cast<double>(sizeof(typename View::Element));
}

template <class T, class Element>
void fill_tile(Out<T>& tile, const Element& element) {
  for (std::int64_t i = 0; i < tile.dim(0); ++i)
    for (std::int64_t j = 0; j < tile.dim(1); ++j)
      tile[static_cast<std::size_t>(i * tile.dim(1) + j)] = element(i, j);
}

template <class T>
void run_factor(Cpu&, InOut<T> a) {
  const std::int64_t n = a.dim(0);
  if (!blas::cholesky(n, a.data(), n))
    throw std::runtime_error("the matrix is not positive definite");
  for (std::int64_t i = 0; i + 1 < n; ++i)
    std::fill(a.data() + i * n + i + 1, a.data() + (i + 1) * n, T{0});
}

}  // namespace

template <class T>
const Kernel<T, bool, In<T>, In<T>, InOut<T>>& add_product() {
  static const auto kernel =
      Kernel(named<T>("add_product"))
          .cpu([](Cpu& cpu, T factor, bool is_transposed, In<T> a, In<T> b, InOut<T> c) {
            blas::gemm(cpu, false, is_transposed, c.dim(0), c.dim(1), a.dim(1), factor, a.data(),
                       a.dim(1), b.data(), b.dim(1), T{1}, c.data(), c.dim(1));
          })
          .cost([](T, bool, In<T> a, In<T> b, InOut<T> c) {
            return Cost{2.0 * static_cast<double>(c.size()) * static_cast<double>(a.dim(1)),
                        bytes_of(a) + bytes_of(b) + bytes_of(c, 2)};
          });
  return kernel;
}

template <class T>
const Kernel<T, In<T>, InOut<T>>& add_square() {
  static const auto kernel =
      Kernel(named<T>("add_square"))
          .cpu([](Cpu& cpu, T factor, In<T> a, InOut<T> c) {
            blas::add_square(cpu, c.dim(0), a.dim(1), factor, a.data(), a.dim(1), c.data(),
                             c.dim(1));
          })
          .cost([](T, In<T> a, InOut<T> c) {
            return Cost{static_cast<double>(c.size()) * static_cast<double>(a.dim(1)),
                        bytes_of(a) + bytes_of(c)};
          });
  return kernel;
}

template <class T>
const Kernel<InOut<T>>& factor() {
  static const auto kernel = Kernel(named<T>("factor")).cpu(run_factor<T>).cost([](InOut<T> a) {
    return Cost{std::pow(static_cast<double>(a.dim(0)), 3) / 3, bytes_of(a, 2)};
  });
  return kernel;
}

template <class T>
const Kernel<In<T>, InOut<T>>& solve() {
  static const auto kernel =
      Kernel(named<T>("solve"))
          .cpu([](Cpu& cpu, In<T> l, InOut<T> b) {
            blas::solve_transposed(cpu, l.dim(0), l.data(), l.dim(1), b.dim(0), b.data(), b.dim(1));
          })
          .cost([](In<T> l, InOut<T> b) {
            return Cost{static_cast<double>(b.size()) * static_cast<double>(l.dim(0)),
                        bytes_of(l) + bytes_of(b, 2)};
          });
  return kernel;
}

template <class T>
const Kernel<std::uint64_t, std::int64_t, std::int64_t, std::int64_t, Out<T>>& random_tile() {
  static const auto kernel =
      Kernel(named<T>("random_tile"))
          .cpu([](Cpu&, std::uint64_t seed, std::int64_t n, std::int64_t first_row,
                  std::int64_t first_column, Out<T> tile) {
            fill_tile(tile, [&](std::int64_t i, std::int64_t j) {
              return T{random_element(
                  seed, static_cast<std::uint64_t>((first_row + i) * n + first_column + j))};
            });
          })
          .cost([](std::uint64_t, std::int64_t, std::int64_t, std::int64_t, Out<T> tile) {
            return Cost{0, bytes_of(tile)};
          });
  return kernel;
}

template <class T>
const Kernel<std::int64_t, std::int64_t, std::int64_t, Out<T>>& definite_tile() {
  static const auto kernel = Kernel(named<T>("definite_tile"))
                                 .cpu([](Cpu&, std::int64_t n, std::int64_t first_row,
                                         std::int64_t first_column, Out<T> tile) {
                                   fill_tile(tile, [&](std::int64_t i, std::int64_t j) {
                                     return definite_element<T>(n, first_row + i, first_column + j);
                                   });
                                 })
                                 .cost([](std::int64_t, std::int64_t, std::int64_t, Out<T> tile) {
                                   return Cost{0, bytes_of(tile)};
                                 });
  return kernel;
}

template <class T>
const Kernel<std::int64_t, In<T>, Out<T>>& take_row() {
  static const auto kernel =
      Kernel(named<T>("take_row"))
          .cpu([](Cpu&, std::int64_t i, In<T> tile, Out<T> row) {
            std::copy_n(tile.data() + i * tile.dim(1), row.size(), row.data());
          })
          .cost([](std::int64_t, In<T>, Out<T> row) {
            return Cost{0, bytes_of(row, 2)};
          });
  return kernel;
}

template <class T>
T definite_element(std::int64_t n, std::int64_t i, std::int64_t j) {
  const auto low = static_cast<std::uint64_t>(std::min(i, j));
  const auto high = static_cast<std::uint64_t>(std::max(i, j));
  const T random{random_element(kDefiniteSeed, high * static_cast<std::uint64_t>(n) + low)};
  return i == j ? random + static_cast<T>(n) : random;
}

#define WEFT_TILE_KERNELS(T)                                                                   \
  template const Kernel<T, bool, In<T>, In<T>, InOut<T>>& add_product<T>();                    \
  template const Kernel<T, In<T>, InOut<T>>& add_square<T>();                                  \
  template const Kernel<InOut<T>>& factor<T>();                                                \
  template const Kernel<In<T>, InOut<T>>& solve<T>();                                          \
  template const Kernel<std::uint64_t, std::int64_t, std::int64_t, std::int64_t, Out<T>>&      \
  random_tile<T>();                                                                            \
  template const Kernel<std::int64_t, std::int64_t, std::int64_t, Out<T>>& definite_tile<T>(); \
  template const Kernel<std::int64_t, In<T>, Out<T>>& take_row<T>();                           \
  template T definite_element<T>(std::int64_t, std::int64_t, std::int64_t);
WEFT_TILE_KERNELS(float)
WEFT_TILE_KERNELS(double)
#undef WEFT_TILE_KERNELS

}  // namespace weft::workloads
