#include "apps/calibrate/perceptron.hpp"

#include "apps/mlp/random.hpp"
#include "apps/mlp/trainer.hpp"
#include "apps/workloads/measured.hpp"

namespace weft::calibrate {
namespace {

constexpr std::size_t kPixels = 784, kClasses = 10;  // as Fashion-MNIST's

mlp::Samples draw(std::size_t count, std::uint64_t seed) {
  mlp::Samples samples{count, {}, {}};
  for (std::size_t i = 0; i < count * kPixels; ++i)
    samples.images.push_back(static_cast<std::uint8_t>(mlp::random_bits(seed, i)));
  for (std::size_t i = 0; i < count; ++i)
    samples.labels.push_back(static_cast<std::uint8_t>(mlp::random_bits(seed + 1, i) % kClasses));
  return samples;
}

}  // namespace

double train(const Runtime& runtime, const std::vector<Device>& devices, const Perceptron& what) {
  mlp::Dataset data;
  data.inputs = kPixels;
  data.classes = kClasses;
  data.train = draw(what.samples, 1);
  data.test = draw(64, 2);
  data.normal = {1 / 128.0f, std::vector<float>(kPixels, -1.0f)};
  mlp::Hyper hyper;
  hyper.inputs = kPixels;
  hyper.classes = kClasses;
  hyper.hidden = what.hidden;
  hyper.batch = what.batch;
  mlp::Trainer trainer(runtime, data, hyper, devices, mlp::Shares(devices.size()));
  trainer.initialise();
  const auto epoch = [&](std::uint64_t number) {
    trainer.train(number, [](const mlp::Progress&) {});
  };
  epoch(1);
  return workloads::timed(runtime, [&] { epoch(2); });
}

}  // namespace weft::calibrate
