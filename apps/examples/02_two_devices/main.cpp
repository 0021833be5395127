// One program on two kinds of device: data goes where it is needed.
#include <cmath>
#include <cstdio>
#include <weft/weft.hpp>

int main() {
  weft::Runtime rt;
  const auto cpu = rt.socket(0), gpu = rt.gpu(0);

  const auto a = rt.uniform({200, 200}, cpu);
  const auto square = gpu.matmul(a, a);     // a goes to the GPU
  const auto cube = cpu.matmul(square, a);  // the square comes back; a is still here too
  const auto expected = cpu.matmul(cpu.matmul(a, a), a);

  const auto got = cube.to_host(), wanted = expected.to_host();
  weft::when_all({got.future(), wanted.future()}).wait();
  float difference = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    difference = std::max(difference, std::abs(got[i] - wanted[i]));
  std::printf("a·a·a on %s and %s: %s (largest difference %g)\n", cpu.name().c_str(),
              gpu.name().c_str(), difference < 1e-3f ? "the same numbers" : "WRONG", difference);
  return difference < 1e-3f ? 0 : 1;
}
