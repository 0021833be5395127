#include "tests/actors/cuda/host_stream.hpp"

#include <cuda_runtime.h>

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft {
namespace test {
namespace {

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw std::runtime_error(cudaGetErrorString(status));
}

std::mutex mutex;
std::map<std::size_t, std::vector<void*>>& spare() {
  static auto* blocks = new std::map<std::size_t, std::vector<void*>>;  // the driver may be gone
  return *blocks;
}

__global__ void write_nowhere(int* where) {
  *where = 1;
}

}  // namespace

void* take_pinned(std::size_t bytes) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto& list = spare()[bytes];
    if (!list.empty()) {
      void* data = list.back();
      list.pop_back();
      return data;
    }
  }
  void* data = nullptr;
  check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable));
  return data;
}

void give_pinned(void* data, std::size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  spare()[bytes].push_back(data);
}

void copy_in_stream(CUstream_st* stream, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

void call_in_stream(CUstream_st* stream, void (*function)(void*), void* argument) {
  check(cudaLaunchHostFunc(stream, function, argument));
}

bool is_captured(CUstream_st* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

void launch_illegal_access(CUstream_st* stream) {
  write_nowhere<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(16));
  check(cudaGetLastError());
}

void launch_too_large(CUstream_st* stream) {
  write_nowhere<<<1, 4096, 0, stream>>>(nullptr);
}

int cuda_device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

}  // namespace test
}  // namespace weft
