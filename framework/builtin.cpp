#include "framework/builtin.hpp"

#include "framework/blas.hpp"
#include "framework/device.hpp"

namespace weft {
namespace {

template <class T>
Kernel<In<T>, In<T>, Out<T>> make_matmul(const char* name) {
  return Kernel(name)
      .cpu([](Cpu& cpu, In<T> a, In<T> b, Out<T> c) {
        const std::int64_t m = a.dim(0), k = a.dim(1), n = b.dim(1);
        blas::gemm(cpu, false, false, m, n, k, T{1}, a.data(), k, b.data(), n, T{0}, c.data(), n);
      })
      .products()
      .cost([](In<T> a, In<T> b, Out<T>) {
        const auto m = static_cast<double>(a.dim(0)), k = static_cast<double>(a.dim(1)),
                   n = static_cast<double>(b.dim(1));
        return Cost{2 * m * n * k, sizeof(T) * (m * k + k * n + m * n)};
      });
}

template <class T>
Tensor<T> submit_matmul(const Device& device, const Kernel<In<T>, In<T>, Out<T>>& kernel,
                        const Tensor<T>& a, const Tensor<T>& b) {
  if (a.shape().rank() != 2 || b.shape().rank() != 2 || a.shape()[1] != b.shape()[0])
    throw UsageError("matmul: the shapes " + a.shape().to_string() + " and " +
                     b.shape().to_string() + " do not fit: wanted [m, k] and [k, n]");
  auto c = device.tensor<T>({a.shape()[0], b.shape()[1]});
  device.submit(kernel, in(a), in(b), out(c));
  return c;
}

}  // namespace

namespace kernels {

const Kernel<In<float>, In<float>, Out<float>>& matmul() {
  static const auto kernel = make_matmul<float>("matmul");
  return kernel;
}

const Kernel<In<double>, In<double>, Out<double>>& matmul_f64() {
  static const auto kernel = make_matmul<double>("matmul_f64");
  return kernel;
}

const Kernel<float, Out<float>>& fill() {
  static const Kernel<float, Out<float>> kernel =
      Kernel("fill").cpu([](Cpu& cpu, float value, Out<float> x) {
        cpu.parallel_for(x.size(), [&](std::size_t i) { x[i] = value; });
      });
  return kernel;
}

const Kernel<std::uint64_t, float, float, Out<float>>& uniform() {
  static const Kernel<std::uint64_t, float, float, Out<float>> kernel =
      Kernel("uniform").cpu([](Cpu& cpu, std::uint64_t seed, float low, float high, Out<float> x) {
        cpu.parallel_for(x.size(), [&](std::size_t i) {
          std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
          z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
          z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
          z ^= z >> 31;
          x[i] = low + (high - low) * (static_cast<float>(z >> 40) * 0x1p-24f);
        });
      });
  return kernel;
}

}  // namespace kernels

Tensor<float> Device::matmul(const Tensor<float>& a, const Tensor<float>& b) const {
  return submit_matmul(*this, kernels::matmul(), a, b);
}

Tensor<double> Device::matmul(const Tensor<double>& a, const Tensor<double>& b) const {
  return submit_matmul(*this, kernels::matmul_f64(), a, b);
}

}  // namespace weft
