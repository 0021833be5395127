#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace weft::apps {

/// A random n × n matrix, its tensor, and some elements of its square in double precision, against
/// which results are held.
template <class T>
class Reference {
 public:
  Reference(const Runtime& rt, std::int64_t n, Precision precision)
      : values_(static_cast<std::size_t>(n * n)) {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<T> uniform(-1, 1);
    for (T& value : values_) value = uniform(random);
    tensor_ = rt.from_host(values_, {n, n});
    if (!rt.has_data()) return;  // then there is nothing to check
    for (int i = 0; i < kSamples; ++i)
      samples_.push_back(sample(random() % values_.size(), static_cast<std::size_t>(n), precision));
  }

  [[nodiscard]] const Tensor<T>& tensor() const { return tensor_; }

  /// Makes the elements that `check` looks at wrong.
  void spoil(std::span<T> result) const {
    for (const Sample& sample : samples_) result[sample.at] = std::numeric_limits<T>::quiet_NaN();
  }

  /// Throws `std::runtime_error` for a result that is wrong. Looks at nothing without data.
  void check(std::span<const T> result) const {
    for (const Sample& sample : samples_) {
      const auto got = static_cast<double>(result[sample.at]);
      if (!(std::abs(got - sample.expected) <= sample.bound))
        throw std::runtime_error("wrong result: element " + std::to_string(sample.at) + " is " +
                                 std::to_string(got) + ", but the dot product is " +
                                 std::to_string(sample.expected) + " within " +
                                 std::to_string(sample.bound));
    }
  }

 private:
  static constexpr int kSamples = 16;
  struct Sample {
    std::size_t at;
    double expected, bound;
  };

  // How far rounding may move a factor, relative to it. A tensor core may cut digits off instead.
  static double rounding_of(Precision precision) {
    switch (precision) {
      case Precision::Tf32:
        return 0x1p-10;
      case Precision::Bf16:
        return 0x1p-7;
      case Precision::Fp32:
        break;
    }
    return 0;
  }

  // The bound holds for every order of summation (Higham, Accuracy and Stability, 3.1).
  [[nodiscard]] Sample sample(std::size_t at, std::size_t n, Precision precision) const {
    const std::size_t i = at / n, j = at % n;
    double expected = 0, size = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const double product =
          static_cast<double>(values_[i * n + k]) * static_cast<double>(values_[k * n + j]);
      expected += product;
      size += std::abs(product);
    }
    const double each = rounding_of(precision), factors = (1 + each) * (1 + each) - 1;
    const double sum = static_cast<double>(n + 2) * std::numeric_limits<T>::epsilon();
    return {at, expected, (sum + factors) * size};
  }

  std::vector<T> values_;
  Tensor<T> tensor_;
  std::vector<Sample> samples_;
};

}  // namespace weft::apps
