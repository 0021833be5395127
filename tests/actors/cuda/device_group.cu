#include "actors/cuda/device_group.hpp"

#include <cuda_runtime.h>

#include "actors/cuda/check.hpp"

namespace weft {
namespace test {
namespace {

__global__ void pass_time(unsigned microseconds) {
  const auto now = [] {
    unsigned long long nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds;
  };
  const unsigned long long end = now() + 1000ull * microseconds;
  while (now() < end) __nanosleep(200);
}

}  // namespace

bool are_peers(int devices) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count < devices) {
    cudaGetLastError();
    return false;
  }
  for (int from = 0; from < devices; ++from)
    for (int to = 0; to < devices; ++to) {
      int can = from == to;
      if (!can && cudaDeviceCanAccessPeer(&can, from, to) != cudaSuccess) cudaGetLastError();
      if (!can) return false;
    }
  return true;
}

DeviceGroup::DeviceGroup(int devices) {
  blocks_.resize(static_cast<std::size_t>(devices));
  for (int device = 0; device < devices; ++device) {
    WEFT_CHECK_CUDA(cudaSetDevice(device));
    cudaStream_t stream = nullptr;
    WEFT_CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    streams_.push_back(stream);
    // Loaded before anything waits on the device.
    cudaFuncAttributes attributes;
    WEFT_CHECK_CUDA(cudaFuncGetAttributes(&attributes, pass_time));
  }
}

DeviceGroup::~DeviceGroup() {
  for (int device = 0; device < size(); ++device) cudaStreamSynchronize(stream(device));
  for (int device = 0; device < size(); ++device) {
    cudaSetDevice(device);
    for (void* block : blocks_[static_cast<std::size_t>(device)]) cudaFree(block);
    cudaStreamDestroy(stream(device));
  }
  cudaSetDevice(0);
}

void* DeviceGroup::allocate(int device, std::size_t bytes) {
  WEFT_CHECK_CUDA(cudaSetDevice(device));
  void* data = nullptr;
  WEFT_CHECK_CUDA(cudaMalloc(&data, bytes));
  blocks_[static_cast<std::size_t>(device)].push_back(data);
  WEFT_CHECK_CUDA(cudaMemsetAsync(data, 0xff, bytes, stream(device)));
  synchronise(device);
  return data;
}

void DeviceGroup::upload(int device, void* to, const void* from, std::size_t bytes) {
  WEFT_CHECK_CUDA(cudaSetDevice(device));
  WEFT_CHECK_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream(device)));
  synchronise(device);
}

void DeviceGroup::download(int device, void* to, const void* from, std::size_t bytes) {
  WEFT_CHECK_CUDA(cudaSetDevice(device));
  WEFT_CHECK_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream(device)));
  synchronise(device);
}

void DeviceGroup::delay(int device, unsigned microseconds) {
  WEFT_CHECK_CUDA(cudaSetDevice(device));
  pass_time<<<1, 1, 0, stream(device)>>>(microseconds);
  WEFT_CHECK_LAUNCH("pass_time");
}

bool DeviceGroup::is_idle(int device) const {
  const cudaError_t status = cudaStreamQuery(stream(device));
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  WEFT_CHECK_CUDA(status);
  return true;
}

void DeviceGroup::synchronise(int device) const {
  WEFT_CHECK_CUDA(cudaStreamSynchronize(stream(device)));
}

CapturedStream::CapturedStream(const DeviceGroup& group, int device)
    : device_(device), stream_(group.stream(device)) {
  WEFT_CHECK_CUDA(cudaSetDevice(device_));
  WEFT_CHECK_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
}

CapturedStream::~CapturedStream() {
  if (executable_) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable_));
}

void CapturedStream::end() {
  WEFT_CHECK_CUDA(cudaSetDevice(device_));
  cudaGraph_t graph;
  WEFT_CHECK_CUDA(cudaStreamEndCapture(stream_, &graph));
  graph_ = graph;
}

// Not while another stream of the thread is still captured.
void CapturedStream::instantiate() {
  WEFT_CHECK_CUDA(cudaSetDevice(device_));
  auto graph = static_cast<cudaGraph_t>(graph_);
  cudaGraphExec_t executable;
  WEFT_CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  WEFT_CHECK_CUDA(cudaGraphDestroy(graph));
  executable_ = executable;
}

void CapturedStream::launch() const {
  WEFT_CHECK_CUDA(cudaSetDevice(device_));
  WEFT_CHECK_CUDA(cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable_), stream_));
}

}  // namespace test
}  // namespace weft
