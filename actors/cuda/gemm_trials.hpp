#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "actors/cuda/gemm_plan.hpp"
#include "framework/contest.hpp"

namespace weft::cuda {

/// Finds out which of cuBLASLt's algorithms is the fastest for one key, where the products of a
/// program are run: behind some of them it enqueues the same product with another algorithm, into
/// scratch memory, between two events that it looks at later. Nothing waits. One thread.
class GemmTrials {
 public:
  /// The first of `candidates` is the one in use.
  explicit GemmTrials(std::vector<GemmPlan> candidates);
  ~GemmTrials();
  GemmTrials(const GemmTrials&) = delete;
  GemmTrials& operator=(const GemmTrials&) = delete;

  /// Whether a product is large enough for a better algorithm to be worth looking for.
  static bool are_worth_it(const GemmKey& key);

  /// Looks at what has ended and enqueues a few more trials behind `product`, which was just
  /// enqueued and not in a capture. The op's scratch memory must not be in use otherwise.
  void go_on(Cuda& cuda, const Gemm<float>& product) { run_some(cuda, product); }
  void go_on(Cuda& cuda, const Gemm<double>& product) { run_some(cuda, product); }

  [[nodiscard]] bool are_decided() const { return contest_.is_decided(); }
  [[nodiscard]] const GemmPlan& winner() const { return candidates_[contest_.winner()]; }

 private:
  struct Trial {
    std::size_t candidate;
    cudaEvent_t begin, end;
    int times;
  };

  void collect();
  template <class T>
  void run_some(Cuda& cuda, const Gemm<T>& product);
  template <class T>
  void run(Cuda& cuda, std::size_t candidate, Gemm<T> product);
  cudaEvent_t event();
  void end_all();
  void report() const;

  std::vector<GemmPlan> candidates_;
  std::vector<bool> is_loaded_;
  std::vector<double> best_ms_;  // by candidate, for the report
  Contest contest_;
  std::deque<Trial> open_;
  std::vector<cudaEvent_t> spare_;
};

}  // namespace weft::cuda
