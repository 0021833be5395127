#pragma once

#include <cstdint>
#include <vector>

#include "framework/device.hpp"

namespace weft::mlp {

/// How the perceptron is made and trained. What a checkpoint keeps and checks.
struct Hyper {
  std::size_t inputs = 0, hidden = 256, classes = 0;
  std::size_t batch = 256;
  float rate = 0.008f;
  float momentum = 0.9f;
  std::uint64_t seed = 1;
};

/// The numbers that training changes, in host memory, in the shapes below; the velocities are empty
/// without momentum.
struct Parameters {
  std::vector<float> w1, w2, v1, v2;
};

/// What was right and wrong, summed over samples.
struct Score {
  double loss = 0;
  double correct = 0;
};

/// A shard of a minibatch: [rows, row_with_one(inputs)] and [rows].
struct Shard {
  Tensor<float> x;
  Tensor<std::uint8_t> y;
};

/// Rows [first, first + rows) of the weights of a layer, 1 or 2.
struct Part {
  int layer = 1;
  std::int64_t first = 0, rows = 0;
};

/// One device's copy of the perceptron and what it does with a shard of samples. Each call submits
/// ops and returns at once.
class Network {
 public:
  Network(Device device, const Hyper& hyper);

  /// Random weights, the same on every device for one seed.
  void initialise();
  /// Weights from the host, in the shapes as stored.
  void set(const Tensor<float>& w1, const Tensor<float>& w2, const Tensor<float>& v1,
           const Tensor<float>& v2);

  /// Forward, and back as far as the errors of both layers; `batch` rows on all devices together.
  void forward(const Shard& shard, std::size_t batch);
  /// A part of the gradient of this device's samples, after `forward`.
  [[nodiscard]] Tensor<float> gradient(const Part& part) const;
  /// One SGD step of that part of the weights, with the gradient of all devices.
  Future update(const Part& part, const Tensor<float>& gradient) const;
  /// The whole gradient in one tensor, and the step with it: fewer and larger messages.
  [[nodiscard]] Tensor<float> gradients() const;
  Future update_all(const Tensor<float>& gradients) const;
  /// Both for a whole layer (1 or 2) in one op, where this device is alone.
  Future descend(int layer) const;

  /// Starts new sums of loss and right answers, for training.
  void reset_score();
  [[nodiscard]] const Tensor<double>& score() const { return score_; }
  /// Adds up a shard without training on it.
  void evaluate(const Shard& shard, const Tensor<double>& score) const;

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] const Tensor<float>& w1() const { return w1_; }
  [[nodiscard]] const Tensor<float>& w2() const { return w2_; }
  [[nodiscard]] const Tensor<float>& v1() const { return v1_; }
  [[nodiscard]] const Tensor<float>& v2() const { return v2_; }

 private:
  Device device_;
  Hyper hyper_;
  Tensor<float> w1_, w2_, v1_, v2_;
  Tensor<float> x_, h_, dz_, dh_;  // of the last forward
  Tensor<double> score_;
};

/// The gradient in parts of some hundred kilobytes: the last layer first, as the backward pass
/// computes it.
std::vector<Part> gradient_parts(const Hyper& hyper);

/// Shapes of the weights, the bias as the last row, and of the velocities: no elements without
/// momentum.
Shape shape_1(const Hyper& hyper);
Shape shape_2(const Hyper& hyper);
Shape velocity_shape_1(const Hyper& hyper);
Shape velocity_shape_2(const Hyper& hyper);
/// The same as devices hold them, with rows of zeros at the end: see `layer_kernels.hpp`.
Shape stored_shape_1(const Hyper& hyper);
Shape stored_shape_2(const Hyper& hyper);
Shape stored_velocity_shape_1(const Hyper& hyper);
Shape stored_velocity_shape_2(const Hyper& hyper);

}  // namespace weft::mlp
