#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/spin.hpp"

namespace weft {

struct KernelCode;

/// What runs of one kernel took on one model of device, by how much there was to do: a point for
/// each power of two. Young runs count more, so that a device that slows down is found out. Any
/// thread.
class KernelCosts {
 public:
  struct Point {
    std::uint64_t runs = 0;
    double amount = 0;   ///< mean: flops, or bytes of a kernel without any
    double seconds = 0;  ///< smoothed mean
    double spread = 0;   ///< smoothed mean deviation from it, in seconds
  };

  void note(double amount, double seconds);
  /// Seconds for `amount`: the point's rate, a line in logarithms between two, the nearest one's
  /// rate beyond them. Nothing without any run.
  [[nodiscard]] std::optional<double> seconds(double amount) const;

  /// The points that have runs, by amount.
  [[nodiscard]] std::vector<Point> points() const;
  /// Takes points of earlier runs in; what has been noted by then stays.
  void take(const std::vector<Point>& points);

 private:
  static constexpr std::size_t kPoints = 64;
  static std::size_t index_of(double amount);

  mutable SpinLock lock_;
  std::array<Point, kPoints> points_{};
  std::uint64_t filled_ = 0;  // a bit for each point that has runs
};

/// `KernelCosts` of all kernels on the device models of one runtime.
class RunCosts {
 public:
  /// `models`: a name for each, which says all that makes runs comparable; devices of the same
  /// model have the same number.
  explicit RunCosts(std::vector<std::string> models);

  using Row = std::vector<std::unique_ptr<KernelCosts>>;  // by model

  /// The costs of a kernel, by model. Live as long as this.
  const Row& row(const KernelCode& code);
  KernelCosts& of(const KernelCode& code, std::size_t model) { return *row(code)[model]; }
  [[nodiscard]] const std::vector<std::string>& models() const { return models_; }

  /// Everything learnt, as JSON: kernels by name and version, models by name.
  [[nodiscard]] std::string to_json() const;
  /// Takes what `to_json` wrote, of models that this runtime has; of kernels whose name and version
  /// turn up later. Returns how many points were of other models. Throws `std::runtime_error` for
  /// text that is no such file.
  std::size_t take_json(const std::string& text);

 private:
  struct Known {
    std::size_t model;
    std::vector<KernelCosts::Point> points;
  };

  const std::vector<std::string> models_;
  const std::uint64_t number_;  // of this, among all there have been
  mutable std::mutex mutex_;
  std::unordered_map<const KernelCode*, Row> rows_;
  std::unordered_map<std::string, std::vector<Known>> known_;  // by kernel's name and version
};

}  // namespace weft
