#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/runtime.hpp"

namespace weft::bench {

/// The lower triangle of the matrix of `workloads::definite_element` in tiles, and its Cholesky
/// factor. `T` is float or double.
template <class T>
class TiledCholesky {
 public:
  TiledCholesky(std::int64_t n, std::int64_t tile);

  [[nodiscard]] std::int64_t count() const { return count_; }  ///< tiles in a row

  /// Submits ops that fill all tiles.
  void make(const Device& device);
  /// Submits the factorisation in the order of `for_each_step`; returns how many ops.
  std::uint64_t factor(const Device& device, std::int64_t panel);
  /// Waits for it. Throws `OpError` if an op failed.
  void wait() const;
  /// Compares sampled elements of L·Lᵀ with the matrix's and says so. Throws
  /// `workloads::WrongResult`, also if the matrix turned out not to be positive definite. Waits.
  [[nodiscard]] std::string check(const Device& device) const;

 private:
  [[nodiscard]] std::int64_t extent(std::int64_t i) const;
  [[nodiscard]] const Tensor<T>& at(std::int64_t i, std::int64_t j) const;
  [[nodiscard]] std::vector<T> row(const Device& device, std::int64_t i) const;

  const std::int64_t n_, tile_, count_;
  std::vector<Tensor<T>> tiles_;  // of the lower triangle, row by row
};

}  // namespace weft::bench
