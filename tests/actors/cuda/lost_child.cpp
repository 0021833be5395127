// Run by lost_test in a process of its own: a kernel that writes where nothing is ends a device's
// context. Prints what became of each future.
#include <cstdio>
#include <numeric>

#include "actors/runtime.hpp"
#include "framework/builtin.hpp"
#include "tests/actors/cuda/host_stream.hpp"
#include "tests/actors/cuda/through_host.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const auto kIota = on_all(
    Kernel("iota").cpu([](Cpu&, int first, Out<int> x) { std::iota(x.begin(), x.end(), first); }));
const auto kCopy = on_all(Kernel("copy_of").cpu(
    [](Cpu&, In<int> from, Out<int> to) { std::copy(from.begin(), from.end(), to.begin()); }));
const auto kWild =
    Kernel("wild").cuda([](Cuda& gpu, InOut<int>) { launch_illegal_access(gpu.stream()); });

void report(const char* what, const Future& future) {
  if (!future.wait_for(std::chrono::seconds(20))) {
    std::printf("%s: never settled\n", what);
    return;
  }
  const FailureRef failure = future.failure();
  std::printf("%s: %s\n", what, failure ? to_string(failure->kind()) : "done");
}

}  // namespace

int main() {
  RuntimeOptions options;
  options.gpus = GpuMode::Cuda;
  Runtime rt(options);
  const auto lost = rt.gpu(0);
  auto x = rt.tensor<int>({100}), y = rt.tensor<int>({100}), z = rt.tensor<int>({100});
  lost.submit(kIota, 1, out(x)).wait();
  const Future wild = lost.submit(kWild, inout(x));
  const Future dependent = lost.submit(kCopy, in(x), out(y));
  const auto host = y.to_host();
  report("wild", wild);
  report("dependent", dependent);
  report("its copy", host.future());
  report("later", lost.submit(kIota, 3, out(y)));
  // CUDA takes the process's other devices along; what counts is that nothing hangs.
  if (rt.gpu_count() > 1) {
    auto w = rt.tensor<float>({100});
    rt.gpu(1).submit(kernels::fill(), 1.0f, out(w));
    const auto there = w.to_host();
    if (there.future().wait_for(std::chrono::seconds(20))) std::printf("neighbour: settled\n");
  } else {
    std::printf("neighbour: settled\n");
  }
  rt.socket(0).submit(kIota, 5, out(z));
  const auto elsewhere = z.to_host();
  report("elsewhere", elsewhere.future());
  if (!elsewhere.future().has_failed()) std::printf("value: %d\n", elsewhere[99]);
  rt.wait_idle();
  std::printf("end\n");
}
