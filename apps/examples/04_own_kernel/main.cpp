// A kernel of one's own: y += a * x.
#include <cstdio>
#include <vector>
#include <weft/weft.hpp>

#include "axpy.hpp"

int main() {
  const auto axpy = weft::Kernel("axpy")
                        .cpu([](weft::Cpu& cpu, float a, weft::In<float> x, weft::InOut<float> y) {
                          cpu.parallel_for(y.size(), [&](std::size_t i) { y[i] += a * x[i]; });
                        })
                        .cost([](float, weft::In<float> x, weft::InOut<float>) {
                          const auto n = static_cast<double>(x.size());
                          return weft::Cost{.flops = 2 * n, .bytes = 12 * n};
                        });
#ifdef EXAMPLE_HAS_CUDA
  axpy.cuda([](weft::Cuda& gpu, float a, weft::In<float> x, weft::InOut<float> y) {
    launch_axpy(gpu.stream(), a, x.data(), y.data(), y.size());
  });
#endif

  weft::Runtime rt;
  const weft::Shape shape{1'000'000};
  const auto x = rt.from_host(std::vector<float>(1'000'000, 2.0f), shape);
  const auto y = rt.from_host(std::vector<float>(1'000'000, 1.0f), shape);

  rt.gpu(0).submit(axpy, 2.0f, in(x), inout(y));  // x and y go to the GPU
  const auto first = y.to_host();
  rt.socket(0).submit(axpy, 1.0f, in(x), inout(y));  // y comes back; x never left
  const auto second = y.to_host();

  std::printf("gpu0: y = %g\n", first[0]);
  std::printf("socket0: y = %g\n", second[0]);
  for (const float value : second.span())
    if (value != 7.0f) return 1;
  std::printf("everywhere: y = 7\n");
}
