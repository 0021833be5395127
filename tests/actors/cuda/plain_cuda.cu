#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "actors/cuda/check.hpp"
#include "actors/cuda/plain_cuda.hpp"

namespace weft::test {
namespace {

constexpr std::size_t kGuard = 512;  // bytes on each side

}  // namespace

std::string no_gpu_reason() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return cudaGetErrorString(error);
  }
  return count == 0 ? "there is no CUDA device" : "";
}

DeviceBytes::DeviceBytes(std::size_t bytes, std::size_t offset) : bytes_(bytes), offset_(offset) {
  const std::size_t all = 2 * kGuard + offset_ + bytes_;
  WEFT_CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&block_), all));
  WEFT_CHECK_CUDA(cudaMemset(block_, 0xff, all));
  WEFT_CHECK_CUDA(cudaDeviceSynchronize());
}

DeviceBytes::~DeviceBytes() {
  cudaFree(block_);
}

void* DeviceBytes::data() const {
  return block_ + kGuard + offset_;
}

void DeviceBytes::upload(const void* from) {
  if (bytes_ > 0) WEFT_CHECK_CUDA(cudaMemcpy(data(), from, bytes_, cudaMemcpyHostToDevice));
  WEFT_CHECK_CUDA(cudaDeviceSynchronize());
}

void DeviceBytes::download(void* to) const {
  WEFT_CHECK_CUDA(cudaDeviceSynchronize());
  std::vector<unsigned char> all(2 * kGuard + offset_ + bytes_);
  WEFT_CHECK_CUDA(cudaMemcpy(all.data(), block_, all.size(), cudaMemcpyDeviceToHost));
  const std::size_t begin = kGuard + offset_, end = begin + bytes_;
  for (std::size_t i = 0; i < all.size(); ++i)
    if ((i < begin || i >= end) && all[i] != 0xff)
      throw std::runtime_error("a kernel wrote " +
                               (i < begin ? std::to_string(begin - i) + " bytes before"
                                          : std::to_string(i - end) + " bytes behind the end of") +
                               " an array of " + std::to_string(bytes_) + " bytes");
  if (bytes_ > 0) std::memcpy(to, all.data() + begin, bytes_);
}

PlainCuda::PlainCuda() {
  WEFT_CHECK_CUDA(cudaSetDevice(0));
  WEFT_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

PlainCuda::~PlainCuda() {
  cudaStreamSynchronize(stream_);
  solver_.reset();
  if (blas_) cublasDestroy(blas_);
  if (blas_lt_) cublasLtDestroy(blas_lt_);
  cudaFree(scratch_);
  cudaStreamDestroy(stream_);
}

cublasContext* PlainCuda::blas() {
  if (!blas_) {
    WEFT_CHECK_CUBLAS(cublasCreate(&blas_));
    WEFT_CHECK_CUBLAS(cublasSetStream(blas_, stream_));
  }
  return blas_;
}

cublasLtContext* PlainCuda::blas_lt() {
  if (!blas_lt_) WEFT_CHECK_CUBLAS(cublasLtCreate(&blas_lt_));
  return blas_lt_;
}

cusolverDnContext* PlainCuda::solver() {
  if (!solver_) solver_ = std::make_unique<cuda::SolverHandle>(stream_);
  return solver_->get();
}

void* PlainCuda::scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    synchronise();
    cudaFree(scratch_);
    scratch_ = nullptr;
    WEFT_CHECK_CUDA(cudaMalloc(&scratch_, bytes));
    scratch_bytes_ = bytes;
  }
  // An op must not count on what another left.
  if (poisons_) WEFT_CHECK_CUDA(cudaMemsetAsync(scratch_, 0xff, bytes, stream_));
  return scratch_;
}

void PlainCuda::clear(void* data, std::size_t bytes) {
  if (bytes > 0) WEFT_CHECK_CUDA(cudaMemsetAsync(data, 0, bytes, stream_));
}

void PlainCuda::synchronise() {
  WEFT_CHECK_CUDA(cudaStreamSynchronize(stream_));
}

double PlainCuda::device_microseconds(const std::function<void()>& enqueue) {
  constexpr int kInGraph = 50, kLaunches = 7;
  enqueue();  // loads kernels and makes plans
  synchronise();
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  WEFT_CHECK_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kInGraph; ++i) enqueue();
  WEFT_CHECK_CUDA(cudaStreamEndCapture(stream_, &graph));
  WEFT_CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  cudaEvent_t begin, end;
  WEFT_CHECK_CUDA(cudaEventCreate(&begin));
  WEFT_CHECK_CUDA(cudaEventCreate(&end));
  std::vector<double> times;
  for (int i = 0; i <= kLaunches; ++i) {
    WEFT_CHECK_CUDA(cudaEventRecord(begin, stream_));
    WEFT_CHECK_CUDA(cudaGraphLaunch(executable, stream_));
    WEFT_CHECK_CUDA(cudaEventRecord(end, stream_));
    WEFT_CHECK_CUDA(cudaEventSynchronize(end));
    float milliseconds = 0;
    WEFT_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    if (i > 0) times.push_back(1e3 * milliseconds / kInGraph);
  }
  WEFT_CHECK_CUDA(cudaEventDestroy(begin));
  WEFT_CHECK_CUDA(cudaEventDestroy(end));
  WEFT_CHECK_CUDA(cudaGraphExecDestroy(executable));
  WEFT_CHECK_CUDA(cudaGraphDestroy(graph));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double PlainCuda::host_microseconds(const std::function<void()>& enqueue) {
  using Clock = std::chrono::steady_clock;
  enqueue();
  std::vector<double> times;
  for (int i = 0; i < 201; ++i) {
    synchronise();
    const auto begin = Clock::now();
    enqueue();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  synchronise();
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace weft::test
