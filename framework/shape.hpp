#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>

#include "framework/failure.hpp"

namespace weft {

/// Extents of a tensor, row-major, up to `kMaxRank` dimensions. Rank 0 is a scalar of one element.
class Shape {
 public:
  static constexpr std::size_t kMaxRank = 4;

  Shape() = default;
  /// Throws `UsageError` for a negative extent, too many dimensions, or more elements than 2^61.
  Shape(std::initializer_list<std::int64_t> extents)  // NOLINT: {4000, 4000} is a shape
      : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents) {
    if (extents.size() > kMaxRank)
      throw UsageError("a shape has at most 4 dimensions, not " + std::to_string(extents.size()));
    std::int64_t size = 1;
    for (std::int64_t extent : extents) {
      if (extent < 0)
        throw UsageError("a shape's extents are 0 or more, not " + std::to_string(extent));
      if (extent != 0 && size > (std::int64_t{1} << 61) / extent)
        throw UsageError("a shape has at most 2^61 elements");
      size *= extent;
      extents_[rank_++] = extent;
    }
  }

  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::int64_t operator[](std::size_t dimension) const { return extents_[dimension]; }
  /// Number of elements.
  [[nodiscard]] std::int64_t size() const {
    std::int64_t n = 1;
    for (std::size_t i = 0; i < rank_; ++i) n *= extents_[i];
    return n;
  }
  friend bool operator==(const Shape&, const Shape&) = default;

  /// `4000 x 784`
  [[nodiscard]] std::string to_string() const {
    std::string text;
    for (std::size_t i = 0; i < rank_; ++i) text += (i ? " x " : "") + std::to_string(extents_[i]);
    return rank_ ? text : "scalar";
  }

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  std::uint32_t rank_ = 0;
};

}  // namespace weft
