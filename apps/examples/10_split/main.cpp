// One op over two GPUs of unlike speed, whose shares follow what they take.
#include <cmath>
#include <cstdio>
#include <topology/discover.hpp>
#include <weft/weft.hpp>

int main() {
  weft::RuntimeOptions options;
  options.machine = weft::parse_machine("1 socket x 2 cores, 2 gpus");
  options.simulate = true;  // in virtual time, with right results
  options.simulated_scale = "gpu1.flops=4,gpu1.memory=4";
  weft::Runtime rt(std::move(options));

  const auto x = rt.uniform({1000, 256}, rt.socket(0), 1),
             w = rt.uniform({256, 64}, rt.socket(0), 2);

  weft::Split split = rt.split({rt.gpu(0), rt.gpu(1)});
  const weft::Rows<float> rows = split.rows(x), products = split.rows<float>({1000, 64});
  for (int step = 0; step < 5; ++step)
    split.submit(weft::kernels::matmul(), in(rows), in(w), out(products)).wait();

  const auto shares = split.shares();
  std::printf("gpu0 has %.0f %% of the rows, gpu1 %.0f %%\n", 100 * shares[0], 100 * shares[1]);

  const auto reached = products.whole(rt.socket(0)).to_host();
  const auto wanted = rt.socket(0).matmul(x, w).to_host();
  int wrong = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) wrong += std::abs(reached[i] - wanted[i]) > 1e-3f;
  std::printf("%zu numbers, %s\n", wanted.size(), wrong == 0 ? "all right" : "WRONG");
  return wrong != 0;
}
