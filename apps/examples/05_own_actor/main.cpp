// An actor of one's own: it submits ops, gets their futures as messages and decides what comes
// next.
#include <caf/event_based_actor.hpp>
#include <cmath>
#include <cstdio>
#include <vector>
#include <weft/weft.hpp>

#include "actors/then.hpp"
#include "newton.hpp"

namespace {

// One Newton step towards the square roots of `a`, and how far the values moved.
const auto newton = weft::Kernel("newton").cpu(
    [](weft::Cpu&, weft::In<float> a, weft::InOut<float> x, weft::Out<float> moved) {
      moved[0] = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float next = 0.5f * (x[i] + a[i] / x[i]);
        moved[0] = std::max(moved[0], std::abs(next - x[i]));
        x[i] = next;
      }
    });

struct Roots {
  const weft::Runtime& rt;
  weft::Tensor<float> a, x;
  weft::Promise done;
  int steps = 0;
};

// Submits a step; its result comes as a message, which submits the next or ends the actor.
void step(caf::event_based_actor* self, const std::shared_ptr<Roots>& roots) {
  const auto gpu = roots->rt.gpu(0);
  const auto moved = gpu.tensor<float>({1});
  gpu.submit(newton, in(roots->a), inout(roots->x), out(moved));
  const auto here = moved.to_host();
  weft::then(self, roots->rt, here.future(), [=](const weft::Future& future) {
    ++roots->steps;
    if (auto failure = future.failure())
      roots->done.fail(failure->describe());
    else if (here[0] < 1e-6f)
      roots->done.fulfil();
    else
      step(self, roots);
  });
}

}  // namespace

int main() {
#ifdef EXAMPLE_HAS_CUDA
  newton.cuda([](weft::Cuda& gpu, weft::In<float> a, weft::InOut<float> x, weft::Out<float> moved) {
    launch_newton(gpu.stream(), a.data(), x.data(), moved.data(), x.size());
  });
#endif
  weft::Runtime rt;
  const std::vector<float> numbers{2, 9, 100};
  const auto a = rt.from_host(numbers, {3});
  const auto x = rt.from_host(numbers, {3});
  const auto roots = std::make_shared<Roots>(Roots{rt, a, x, weft::Promise("roots"), 0});

  const weft::Future done = roots->done.future();
  rt.system().spawn([roots](caf::event_based_actor* self) { step(self, roots); });
  done.wait();

  const auto values = x.to_host();
  std::printf("after %d steps: the square root of 2 is %.5f, of 9 %.5f, of 100 %.5f\n",
              roots->steps, values[0], values[1], values[2]);
}
