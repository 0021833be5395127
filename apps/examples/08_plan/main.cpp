// A step that repeats: recorded once, replayed with other inputs.
#include <cmath>
#include <cstdio>
#include <vector>
#include <weft/weft.hpp>

int main() {
  weft::Runtime rt;
  const auto gpu = rt.gpu(0);
  const auto w1 = rt.uniform({64, 256}, gpu, 1), w2 = rt.uniform({256, 10}, gpu, 2);
  std::vector<weft::Tensor<float>> inputs;
  for (std::uint64_t i = 0; i < 8; ++i)
    inputs.push_back(rt.uniform({32, 64}, rt.socket(0), 10 + i));

  // This runs as it is, for the first input, and is remembered.
  weft::Tensor<float> y;
  const weft::Plan step = rt.record([&] { y = gpu.matmul(gpu.matmul(inputs[0], w1), w2); });
  std::printf("%s", step.explain().c_str());

  std::vector<weft::HostArray<float>> results{y.to_host()};
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    step.bind(inputs[0], inputs[i]).replay();  // the input goes to the GPU, then the same ops
    results.push_back(y.to_host());            // y as this replay leaves it
  }
  weft::when_all(results).wait();

  int wrong = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto wanted = gpu.matmul(gpu.matmul(inputs[i], w1), w2).to_host();
    for (std::size_t k = 0; k < wanted.size(); ++k) wrong += results[i][k] != wanted[k];
  }
  std::printf("%zu inputs through one plan: %s\n", inputs.size(),
              wrong == 0 ? "as if submitted each time" : "WRONG");
  return wrong != 0;
}
