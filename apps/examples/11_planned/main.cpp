// A step that plans itself: written as a function, recorded twice for each shape, then replayed.
#include <cstdio>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace {

const auto kSmooth = weft::Kernel("smooth").cpu(
    [](weft::Cpu& cpu, float share, weft::In<float> from, weft::Out<float> to) {
      const std::size_t last = from.size() - 1;
      cpu.parallel_for(from.size(), [&](std::size_t i) {
        const float left = from[i == 0 ? 0 : i - 1], right = from[i == last ? last : i + 1];
        to[i] = (1 - share) * from[i] + 0.5f * share * (left + right);
      });
    });

std::vector<float> spike(std::size_t size) {
  std::vector<float> values(size, 0.0f);
  values[size / 2] = 1.0f;
  return values;
}

}  // namespace

int main() {
  weft::Runtime rt;
  const auto device = rt.socket(0);

  // Ten sweeps from one tensor into the other and back.
  auto sweeps = rt.planned([&](weft::Tensor<float> x, weft::Tensor<float> y, float share) {
    for (int i = 0; i < 5; ++i) {
      device.submit(kSmooth, share, in(x), out(y));
      device.submit(kSmooth, share, in(y), out(x));
    }
  });

  int wrong = 0;
  for (const std::size_t size : {1000u, 5000u}) {
    const weft::Shape shape{static_cast<std::int64_t>(size)};
    auto x = rt.from_host(spike(size), shape), y = rt.from_host(spike(size), shape);
    auto plain = rt.from_host(spike(size), shape), other = rt.from_host(spike(size), shape);
    for (int i = 0; i < 40; ++i) {
      sweeps(x, y, 0.25f);  // a future, as any submission
      std::swap(x, y);      // tensors may change places
      for (int sweep = 0; sweep < 5; ++sweep) {
        device.submit(kSmooth, 0.25f, in(plain), out(other));
        device.submit(kSmooth, 0.25f, in(other), out(plain));
      }
      std::swap(plain, other);
    }
    const auto planned = x.to_host(), wanted = plain.to_host();
    for (std::size_t i = 0; i < size; ++i) wrong += planned[i] != wanted[i];
  }
  std::printf("%s", sweeps.explain().c_str());
  std::printf("80 calls, %zu recordings: %s\n", sweeps.recordings(),
              wrong == 0 ? "as if submitted each time" : "WRONG");
  return wrong != 0;
}
