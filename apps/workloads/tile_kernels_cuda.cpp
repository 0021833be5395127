#include "actors/cuda/blas.hpp"
#include "actors/cuda/kernels/elementwise.hpp"
#include "actors/cuda/kernels/triangle.hpp"
#include "actors/cuda/solver.hpp"
#include "apps/workloads/cuda_variants.hpp"
#include "apps/workloads/fill_tiles.hpp"
#include "apps/workloads/tile_kernels.hpp"

namespace weft::workloads {
namespace {

template <class T>
void run_add_product(Cuda& gpu, T factor, bool is_transposed, In<T> a, In<T> b, InOut<T> c) {
  cuda::Gemm<T> product;
  product.transpose_b = is_transposed;
  product.m = c.dim(0);
  product.n = c.dim(1);
  product.k = a.dim(1);
  product.alpha = factor;
  product.a = a.data();
  product.lda = a.dim(1);
  product.b = b.data();
  product.ldb = b.dim(1);
  product.beta = 1;
  product.c = c.data();
  product.ldc = c.dim(1);
  cuda::gemm(gpu, product);
}

template <class T>
void run_add_square(Cuda& gpu, T factor, In<T> a, InOut<T> c) {
  cuda::add_square(gpu, factor, a.data(), c.dim(0), a.dim(1), a.dim(1), c.data(), c.dim(1));
}

template <class T>
void run_factor(Cuda& gpu, InOut<T> a) {
  const std::int64_t n = a.dim(0);
  cuda::cholesky(gpu, cuda::Triangle::Lower, a.data(), n, n);
  cuda::clear_above_diagonal(gpu.stream(), a.data(), n, n);
}

template <class T>
void run_solve(Cuda& gpu, In<T> l, InOut<T> b) {
  cuda::solve_transposed(gpu, l.data(), l.dim(0), l.dim(1), b.data(), b.dim(0), b.dim(1));
}

template <class T>
void run_random_tile(Cuda& gpu, std::uint64_t seed, std::int64_t n, std::int64_t first_row,
                     std::int64_t first_column, Out<T> tile) {
  device::random_tile(gpu.stream(), tile.data(),
                      {n, first_row, first_column, tile.dim(0), tile.dim(1)}, seed);
}

template <class T>
void run_definite_tile(Cuda& gpu, std::int64_t n, std::int64_t first_row, std::int64_t first_column,
                       Out<T> tile) {
  device::definite_tile(gpu.stream(), tile.data(),
                        {n, first_row, first_column, tile.dim(0), tile.dim(1)}, kDefiniteSeed);
}

template <class T>
void run_take_row(Cuda& gpu, std::int64_t i, In<T> tile, Out<T> row) {
  cuda::copy(gpu.stream(), row.data(), tile.data() + i * tile.dim(1), row.size() * sizeof(T));
}

template <class T>
void add_variants() {
  add_product<T>().cuda(run_add_product<T>);
  add_square<T>().cuda(run_add_square<T>);
  factor<T>().cuda(run_factor<T>);
  solve<T>().cuda(run_solve<T>);
  random_tile<T>().cuda(run_random_tile<T>);
  definite_tile<T>().cuda(run_definite_tile<T>);
  take_row<T>().cuda(run_take_row<T>);
}

}  // namespace

void add_tile_variants() {
  add_variants<float>();
  add_variants<double>();
}

}  // namespace weft::workloads
