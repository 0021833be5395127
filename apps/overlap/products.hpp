#pragma once

#include <type_traits>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

#include "apps/overlap/landing.hpp"

namespace weft::apps {

/// A number of products x·x on one device: submitted each time, or recorded as a plan the first
/// time and replayed from then on.
template <class T>
class Products {
 public:
  Products(const Runtime& rt, const Device& device, const Tensor<T>& x, int ops, bool is_planned,
           bool is_in_order = false)
      : rt_(rt),
        device_(device),
        x_(x),
        ops_(ops),
        is_planned_(is_planned),
        is_in_order_(is_in_order) {}

  /// Starts them all.
  void start() {
    if (plan_) {
      replayed_ = plan_.replay();
    } else if (is_planned_) {
      plan_ = rt_.record([&] { submit(); });
    } else {
      submit();
    }
  }
  /// Starts them and the copies of their results.
  void start(Landing<T>& landing) {
    std::size_t taken = 0;
    start_for_copies();
    while (taken < static_cast<std::size_t>(ops_)) copy_next(taken++, landing);
  }
  /// Starts two of them and the copies of their results, of each in turn.
  static void start(Products& a, Landing<T>& to_a, Products& b, Landing<T>& to_b) {
    a.start_for_copies();
    b.start_for_copies();
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.ops_); ++i) {
      a.copy_next(i, to_a);
      b.copy_next(i, to_b);
    }
  }
  /// Waits for what `start` without copies began.
  void wait() const {
    replayed_.wait();
    when_all(results_).wait();
  }
  /// Drops the results. Those of a plan stay with it, and its next replay writes them anew.
  void clear() {
    if (!plan_) results_.clear();
  }
  [[nodiscard]] const std::vector<Tensor<T>>& results() const { return results_; }

 private:
  void submit() {
    results_.clear();
    Future before;
    for (int i = 0; i < ops_; ++i) {
      if (is_in_order_) {
        results_.push_back(device_.template tensor<T>(x_.shape()));
        before = device_.submit(matmul(), in(x_), in(x_), out(results_.back()), after(before));
      } else {
        results_.push_back(device_.matmul(x_, x_));
      }
    }
  }
  static auto matmul() {
    if constexpr (std::is_same_v<T, double>)
      return kernels::matmul_f64();
    else
      return kernels::matmul();
  }

  // Copies to the program are no part of a plan. What is submitted op by op keeps no result that is
  // copied.
  void start_for_copies() {
    if (is_planned_) start();
  }
  void copy_next(std::size_t i, Landing<T>& landing) {
    if (is_planned_)
      landing.take(results_[i]);
    else
      landing.take(device_.matmul(x_, x_));
  }

  const Runtime& rt_;
  Device device_;
  Tensor<T> x_;
  int ops_;
  bool is_planned_, is_in_order_;
  std::vector<Tensor<T>> results_;
  Plan plan_;
  Future replayed_;
};

}  // namespace weft::apps
