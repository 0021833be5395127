// Two devices, one program, no stream, event or lock in it.
#include <cstdio>
#include <weft/weft.hpp>

int main() {
  weft::Runtime rt;
  const auto gpu = rt.gpu(0);
  const auto x = rt.uniform({256, 256}, gpu);
  const auto y = gpu.matmul(x, x).to_host();
  y.wait();
  std::printf("y[0] = %f, computed on %s (%s)\n", y[0], gpu.name().c_str(),
              rt.engine_of(gpu).c_str());
}
