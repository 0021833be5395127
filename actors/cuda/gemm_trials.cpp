#include "actors/cuda/gemm_trials.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "actors/cuda/check.hpp"
#include "framework/failure.hpp"

namespace weft::cuda {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// A trial takes its op's place on the device for as long as the op does itself, about.
constexpr int kTrialsAtOnce = 2;

double flops_of(const GemmKey& key) {
  return 2.0 * static_cast<double>(key.m) * static_cast<double>(key.n) * static_cast<double>(key.k);
}

// Bytes from the first element of the product to its last.
template <class T>
std::size_t extent_of(const Gemm<T>& product) {
  return static_cast<std::size_t>((product.m - 1) * product.ldc + product.n) * sizeof(T);
}

}  // namespace

GemmTrials::GemmTrials(std::vector<GemmPlan> candidates)
    : candidates_(std::move(candidates)),
      is_loaded_(candidates_.size()),
      best_ms_(candidates_.size(), kNever),
      contest_(candidates_.size()) {}

// Errors do not matter here: the device may be lost.
GemmTrials::~GemmTrials() {
  end_all();
  for (cudaEvent_t event : spare_) cudaEventDestroy(event);
  cudaGetLastError();
}

bool GemmTrials::are_worth_it(const GemmKey& key) {
  constexpr double kLeastFlops = 5e7;  // some microseconds
  constexpr double kMostBytes = 512e6;
  return flops_of(key) >= kLeastFlops &&
         static_cast<double>(key.ldc) * static_cast<double>(key.n) * (key.is_double ? 8 : 4) <=
             kMostBytes;
}

void GemmTrials::end_all() {
  for (const Trial& trial : open_) {
    spare_.push_back(trial.begin);
    spare_.push_back(trial.end);
  }
  open_.clear();
}

cudaEvent_t GemmTrials::event() {
  if (spare_.empty()) {
    cudaEvent_t made = nullptr;
    WEFT_CHECK_CUDA(cudaEventCreate(&made));
    return made;
  }
  cudaEvent_t taken = spare_.back();
  spare_.pop_back();
  return taken;
}

void GemmTrials::collect() {
  while (!open_.empty() && !are_decided()) {
    const Trial trial = open_.front();
    const cudaError_t status = cudaEventQuery(trial.end);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();  // it would count as an error of the next launch
      return;
    }
    float ms = 0;
    if (status != cudaSuccess || cudaEventElapsedTime(&ms, trial.begin, trial.end) != cudaSuccess) {
      cudaGetLastError();
      contest_.give_up();
      return;
    }
    open_.pop_front();
    spare_.push_back(trial.begin);
    spare_.push_back(trial.end);
    const double each = double{ms} / trial.times;
    best_ms_[trial.candidate] = std::min(best_ms_[trial.candidate], each);
    contest_.took(trial.candidate, each);
  }
}

template <class T>
void GemmTrials::run(Cuda& cuda, std::size_t candidate, Gemm<T> product) {
  // What is short goes several times: marks and gaps would count as much.
  constexpr double kFlops = 2e9;
  constexpr int kMostTimes = 8;
  char* const memory = static_cast<char*>(cuda.scratch(kWorkspaceBytes + extent_of(product)));
  product.c = reinterpret_cast<T*>(memory + kWorkspaceBytes);
  GemmPlan& plan = candidates_[candidate];
  const int times =
      static_cast<int>(std::clamp(kFlops / flops_of(plan.key), 1.0, double{kMostTimes}));
  Trial trial{candidate, event(), event(), times};
  try {
    if (!is_loaded_[candidate]) launch(cuda, plan, product, memory);  // loads its kernels
    is_loaded_[candidate] = true;
    WEFT_CHECK_CUDA(cudaEventRecord(trial.begin, cuda.stream()));
    for (int i = 0; i < times; ++i) launch(cuda, plan, product, memory);
    WEFT_CHECK_CUDA(cudaEventRecord(trial.end, cuda.stream()));
    open_.push_back(trial);
  } catch (const DeviceError&) {  // recommended, but refused
    cudaGetLastError();
    spare_.push_back(trial.begin);
    spare_.push_back(trial.end);
    contest_.took(candidate, kNever);
  }
}

template <class T>
void GemmTrials::run_some(Cuda& cuda, const Gemm<T>& product) {
  collect();
  for (int i = 0; i < kTrialsAtOnce && !are_decided(); ++i) {
    const auto next = contest_.next();
    if (!next) break;
    try {
      run(cuda, *next, product);
    } catch (const DeviceError&) {  // no memory for the result
      contest_.give_up();
    }
  }
  if (!are_decided()) return;
  end_all();
  report();
}

void GemmTrials::report() const {
  const GemmKey& key = candidates_.front().key;
  spdlog::debug("product {} x {} x {}: algorithm {} of {}, {:.1f} us, recommended {:.1f} us", key.n,
                key.k, key.m, contest_.winner() + 1, candidates_.size(),
                1e3 * best_ms_[contest_.winner()], 1e3 * best_ms_[0]);
}

template void GemmTrials::run_some(Cuda&, const Gemm<float>&);
template void GemmTrials::run_some(Cuda&, const Gemm<double>&);

}  // namespace weft::cuda
