#include "apps/bench/cholesky_peer.hpp"

#include <chrono>

#include "apps/bench/cores.hpp"
#include "apps/bench/device_report.hpp"
#include "apps/bench/device_stopwatch.hpp"
#include "apps/bench/statistics.hpp"
#include "apps/workloads/tile_kernels.hpp"
#include "framework/blas.hpp"
#include "framework/memory_pool.hpp"
#if WEFT_HAVE_CUDA
#include "actors/cuda/solver.hpp"
#endif

namespace weft::bench {
namespace {

#if WEFT_HAVE_CUDA
template <class T>
auto whole_factor() {
  return Kernel("whole_factor").cuda([](Cuda& gpu, bool is_upper, InOut<T> a) {
    cuda::cholesky(gpu, is_upper ? cuda::Triangle::Upper : cuda::Triangle::Lower, a.data(),
                   a.dim(0), a.dim(1));
  });
}

template <class T>
std::vector<double> whole_factor_seconds(const Runtime& runtime, const Device& gpu, std::int64_t n,
                                         bool is_upper, std::uint32_t repeats) {
  static const auto kernel = whole_factor<T>();
  const auto a = gpu.tensor<T>({n, n});
  std::vector<double> seconds;
  for (std::uint32_t r = 0; r <= repeats; ++r) {
    gpu.submit(workloads::definite_tile<T>(), n, std::int64_t{0}, std::int64_t{0}, out(a)).wait();
    const DeviceStopwatch watch(runtime);
    gpu.submit(kernel, is_upper, inout(a)).wait();
    if (r > 0) seconds.push_back(watch.seconds());
  }
  runtime.wait_idle();
  return seconds;
}

template <class T>
CholeskyPeer factor_with_cusolver(const Runtime& runtime, const Device& gpu, std::int64_t n,
                                  std::uint32_t repeats) {
  CholeskyPeer peer;
  peer.name = "cuSOLVER potrf on " + gpu.name();
  const auto wanted = static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * sizeof(T);
  const std::size_t there = runtime.fabric().memories[gpu.place().memory]->budget();
  // Its workspace is less than the matrix's panel of some hundred columns.
  if (wanted > there - there / 16) {
    peer.left_out =
        "the matrix takes " + format_bytes(wanted) + " and the memory has " + format_bytes(there);
    return peer;
  }
  for (const bool is_upper : {false, true}) {
    const auto seconds = whole_factor_seconds<T>(runtime, gpu, n, is_upper, repeats);
    if (peer.seconds.empty() || median(seconds) < median(peer.seconds)) peer.seconds = seconds;
  }
  return peer;
}
#endif

template <class T>
CholeskyPeer factor_with_openblas(std::int64_t n, std::uint32_t repeats) {
  const int threads = static_cast<int>(core_cpus().size());
  CholeskyPeer peer;
  peer.name = "OpenBLAS potrf on " + std::to_string(threads) + " cores";
  std::vector<T> a(static_cast<std::size_t>(n * n));
  for (std::uint32_t r = 0; r <= repeats; ++r) {
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j)
        a[static_cast<std::size_t>(i * n + j)] = workloads::definite_element<T>(n, i, j);
    const auto start = std::chrono::steady_clock::now();
    if (!blas::cholesky_on_threads(threads, n, a.data(), n)) {
      peer.left_out = "it says that the matrix is not positive definite";
      peer.seconds.clear();
      return peer;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (r > 0) peer.seconds.push_back(took.count());
  }
  return peer;
}

}  // namespace

template <class T>
CholeskyPeer measure_peer(RuntimeOptions options, std::int64_t n, std::uint32_t repeats) {
#if WEFT_HAVE_CUDA
  options.memory = "";
  const Runtime runtime(std::move(options));
  for (std::size_t g = 0; g < runtime.gpu_count(); ++g)
    if (runtime.engine_of(runtime.gpu(g)) == "cuda")
      return factor_with_cusolver<T>(runtime, runtime.gpu(g), n, repeats);
#else
  (void)options;
#endif
  return factor_with_openblas<T>(n, repeats);
}

template CholeskyPeer measure_peer<float>(RuntimeOptions, std::int64_t, std::uint32_t);
template CholeskyPeer measure_peer<double>(RuntimeOptions, std::int64_t, std::uint32_t);

}  // namespace weft::bench
