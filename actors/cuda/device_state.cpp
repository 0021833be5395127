#include "actors/cuda/device_state.hpp"

#include <cuda_runtime_api.h>
#include <spdlog/spdlog.h>

#include "actors/cuda/check.hpp"

namespace weft::cuda {
namespace {

// What we last made this thread's current device. Kernels may change it only for their own call:
// the interface says so.
int& known_current() {
  thread_local int ordinal = -1;
  return ordinal;
}

}  // namespace

void DeviceState::lose(const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    if (is_lost()) return;
    reason_ = reason;
    lost_.store(true, std::memory_order_release);
  }
  spdlog::error("{} is lost: {}; its ops fail, the rest goes on", name_, reason);
}

Failure* DeviceState::loss(const std::string& op) const {
  std::lock_guard lock(mutex_);
  return Failure::make(FailureKind::DeviceLost, op, name_, reason_);
}

void DeviceState::make_current() {
  if (known_current() == ordinal_) return;
  if (const cudaError_t status = cudaSetDevice(ordinal_)) {
    cudaGetLastError();
    lose(std::string("cudaSetDevice: ") + cudaGetErrorString(status));
    return;
  }
  known_current() = ordinal_;
}

bool DeviceState::is_gone(CUstream_st* stream) {
  const cudaError_t status = cudaStreamQuery(stream);
  cudaGetLastError();
  if (status != cudaErrorNotReady && status != cudaSuccess) lose(cudaGetErrorString(status));
  return is_lost();
}

void DeviceState::forget_current() {
  known_current() = -1;
}

CurrentDevice::CurrentDevice(int ordinal) {
  WEFT_CHECK_CUDA(cudaGetDevice(&before_));
  WEFT_CHECK_CUDA(cudaSetDevice(ordinal));
  known_current() = ordinal;
}

CurrentDevice::~CurrentDevice() {
  cudaSetDevice(before_);
  known_current() = before_;
}

}  // namespace weft::cuda
