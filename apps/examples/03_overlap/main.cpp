// Two GPUs compute while their earlier results travel to the host.
#include <chrono>
#include <cstdio>
#include <vector>
#include <weft/weft.hpp>

int main() {
  weft::Runtime rt;  // this machine: an actor per socket, GPU and link
  const auto g0 = rt.gpu(0), g1 = rt.gpu(rt.gpu_count() - 1);
  const auto x0 = rt.uniform({256, 256}, g0), x1 = rt.uniform({256, 256}, g1);

  const auto start = std::chrono::steady_clock::now();
  std::vector<weft::HostArray<float>> results;
  for (int i = 0; i < 50; ++i) {
    const auto y0 = g0.matmul(x0, x0), y1 = g1.matmul(x1, x1);  // two messages; both GPUs work
    results.push_back(y0.to_host());  // a message to GPU 0's link; overlaps the next matmul
    results.push_back(y1.to_host());
  }
  const auto submitted = std::chrono::steady_clock::now();
  weft::when_all(results).wait();
  const auto done = std::chrono::steady_clock::now();

  const auto ms = [](auto duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
  };
  std::printf("200 messages sent in %.2f ms, then %.1f ms until the last result\n",
              ms(submitted - start), ms(done - submitted));
  std::printf("%zu results of 256 x 256 are here\n", results.size());
}
