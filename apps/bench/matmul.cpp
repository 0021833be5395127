#include <stdexcept>

#include "actors/runtime.hpp"
#include "apps/bench/cores.hpp"
#include "apps/bench/executor.hpp"
#include "apps/bench/measurement.hpp"
#include "framework/builtin.hpp"

// The Fortran interface of every BLAS, for OpenBLAS with its own threads; column-major.
extern "C" void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda,
                       const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

namespace weft::bench {
namespace {

constexpr std::uint32_t kWarmUps = 2;

// `product` computes once and waits for it.
template <class Product>
Figures repeat(const Measurement& wanted, const Product& product) {
  const double n = wanted.ops;
  for (std::uint32_t i = 0; i < kWarmUps; ++i) product();
  std::vector<double> rates;
  for (std::uint32_t i = 0; i < wanted.repeats; ++i) {
    const Stopwatch watch;
    product();
    rates.push_back(2 * n * n * n / watch.seconds());
  }
  return {{"flops_per_second", rates}};
}

Figures measure_weft(const Measurement& wanted) {
  RuntimeOptions options;
  options.machine = machine_of(wanted.threads);
  options.gpus = GpuMode::None;
  options.serial = false;
  Runtime runtime(std::move(options));
  const Device socket = runtime.socket(0);
  const auto n = static_cast<std::int64_t>(wanted.ops);
  const auto a = runtime.uniform({n, n}, socket, 1), b = runtime.uniform({n, n}, socket, 2);
  const auto c = socket.tensor<float>({n, n});
  return repeat(wanted, [&] { socket.submit(kernels::matmul(), in(a), in(b), out(c)).wait(); });
}

// As many threads as OPENBLAS_NUM_THREADS says, on the cores of this process.
Figures measure_openblas(const Measurement& wanted) {
  const int n = static_cast<int>(wanted.ops);
  const auto elements = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  std::vector<float> a(elements, 0.5f), b(elements, 0.25f), c(elements);
  const float one = 1, zero = 0;
  return repeat(wanted, [&] {
    sgemm_("N", "N", &n, &n, &n, &one, a.data(), &n, b.data(), &n, &zero, c.data(), &n);
  });
}

}  // namespace

Figures measure_matmul(const Measurement& wanted) {
  if (wanted.system == "weft-host") return measure_weft(wanted);
  if (wanted.system == "openblas") return measure_openblas(wanted);
  throw std::invalid_argument("system \"" + wanted.system + "\": wanted weft-host or openblas");
}

}  // namespace weft::bench
