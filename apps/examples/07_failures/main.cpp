// What fails, what it takes with it, and what goes on.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft/weft.hpp>

namespace {

const auto picky = weft::Kernel("picky").cpu([](weft::Cpu&, weft::InOut<float> x) {
  if (x[0] > 0) throw std::invalid_argument("x is positive");
});

// Waits and says how it ended.
bool report(const char* what, const weft::Future& future) {
  try {
    future.wait();
    std::printf("%s\n", what);
    return true;
  } catch (const weft::OpError& error) {
    std::printf("%s: FAILED: %s\n", what, error.what());
    return false;
  }
}

}  // namespace

int main() {
  weft::RuntimeOptions options;
  options.gpus = weft::GpuMode::Emulated;  // a GPU that can be lost on purpose
  options.emulated_gpus = 2;
  options.emulated = weft::EmulatedOptions{};
  options.emulated->memory_bytes = 64 << 20;
  weft::Runtime rt(options);
  const auto g0 = rt.gpu(0), g1 = rt.gpu(1);

  // A kernel throws: its future fails, and what needs its result fails with the same root cause.
  const auto x = rt.from_host(std::vector<float>(16, 1.0f), {4, 4});
  const auto good = rt.uniform({4, 4}, g0);
  g0.submit(picky, inout(x));
  const auto product = g1.matmul(x, good);
  report("a dependent on gpu1", product.future());
  report("gpu0 still computes", g0.matmul(good, good).future());

  // A call that cannot be right is refused where it is made; nothing was submitted.
  try {
    const auto impossible = g0.matmul(good, rt.uniform({5, 5}, g0));
  } catch (const weft::UsageError& error) {
    std::printf("refused: %s\n", error.what());
  }

  // A device is lost: its futures fail, the others go on, values elsewhere are still there.
  rt.lose(g1);
  if (!report("a matmul on gpu1", g1.matmul(good, good).future())) std::printf("gpu1 is lost\n");
  report("gpu0 goes on", g0.matmul(good, good).future());

  // More than its memory holds: fails at once and says how much was wanted and is there.
  report("a 400 MB tensor on a GPU of 64 MB", rt.uniform({10'000, 10'000}, g0).future());

  // A tensor whose last write failed is whole again once it is written anew.
  g0.submit(weft::kernels::fill(), 3.0f, out(x));
  std::printf("x again: %g\n", x.to_host()[0]);
}
