// Data-parallel training: each GPU has its half of the samples and a copy of the model; gradients
// are all-reduced. Fits y = x · w for a hidden w.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
#include <weft/weft.hpp>

#include "kernels.hpp"

namespace {

constexpr std::int64_t kSamples = 512, kFeatures = 32;  // samples of one device
using Matrix = weft::Tensor<float>;

// error = x·w - y; gradient = xᵀ·error / samples; loss = mean of error² / 2.
const auto gradient_of =
    weft::Kernel("gradient")
        .cpu([](weft::Cpu&, weft::In<float> x, weft::In<float> y, weft::In<float> w,
                weft::Out<float> gradient, weft::Out<float> loss) {
          const std::size_t n = y.size(), d = w.size();
          const float scale = 1.0f / static_cast<float>(n);
          std::memset(gradient.data(), 0, d * sizeof(float));
          loss[0] = 0;
          for (std::size_t i = 0; i < n; ++i) {
            float error = -y[i];
            for (std::size_t j = 0; j < d; ++j) error += x[i * d + j] * w[j];
            for (std::size_t j = 0; j < d; ++j) gradient[j] += scale * error * x[i * d + j];
            loss[0] += 0.5f * scale * error * error;
          }
        });

// w -= rate · gradient
const auto descend = weft::Kernel("descend").cpu(
    [](weft::Cpu&, float rate, weft::In<float> gradient, weft::InOut<float> w) {
      for (std::size_t j = 0; j < w.size(); ++j) w[j] -= rate * gradient[j];
    });

struct Shard {
  weft::Device device;
  Matrix x, y, w, gradient, loss;
};

Shard make_shard(const weft::Runtime& rt, const weft::Device& device, const Matrix& hidden,
                 std::uint64_t seed) {
  auto x = rt.uniform({kSamples, kFeatures}, device, seed);
  auto y = device.matmul(x, hidden);
  return {device,
          x,
          y,
          rt.zeros({kFeatures, 1}, device),
          device.tensor<float>({kFeatures, 1}),
          device.tensor<float>({1})};
}

}  // namespace

int main() {
#ifdef EXAMPLE_HAS_CUDA
  gradient_of.cuda([](weft::Cuda& gpu, weft::In<float> x, weft::In<float> y, weft::In<float> w,
                      weft::Out<float> gradient, weft::Out<float> loss) {
    launch_gradient(gpu.stream(), x.data(), y.data(), w.data(), gradient.data(), loss.data(),
                    y.size(), w.size());
  });
  descend.cuda([](weft::Cuda& gpu, float rate, weft::In<float> gradient, weft::InOut<float> w) {
    launch_descend(gpu.stream(), rate, gradient.data(), w.data(), w.size());
  });
#endif
  weft::Runtime rt;
  const std::vector<weft::Device> devices{rt.gpu(0), rt.gpu_count() > 1 ? rt.gpu(1) : rt.socket(0)};
  const auto hidden = rt.uniform({kFeatures, 1}, rt.socket(0), 7);
  std::vector<Shard> shards;
  for (const auto& device : devices)
    shards.push_back(make_shard(rt, device, hidden, shards.size()));
  const auto all = rt.collective(devices);

  weft::HostArray<float> first, last;
  for (int step = 0; step < 200; ++step) {
    for (const Shard& s : shards)
      s.device.submit(gradient_of, in(s.x), in(s.y), in(s.w), out(s.gradient), out(s.loss));
    all.all_reduce<float>({shards[0].gradient, shards[1].gradient});
    for (const Shard& s : shards)
      s.device.submit(descend, 0.5f, in(s.gradient), inout(s.w));  // half of the sum of two
    if (step == 0) first = shards[0].loss.to_host();
  }
  last = shards[0].loss.to_host();

  const auto w0 = shards[0].w.to_host(), w1 = shards[1].w.to_host();
  const bool same = w0.to_vector() == w1.to_vector();
  std::printf("200 steps on %s and %s: loss %.4f -> %.6f\n", devices[0].name().c_str(),
              devices[1].name().c_str(), first[0], last[0]);
  std::printf("the model on both: %s\n", same ? "the same" : "DIFFERENT");
  return same ? 0 : 1;
}
