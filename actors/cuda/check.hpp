#pragma once

// No CUDA header and nothing beyond C++17: included by .cu files and by C++20 code alike.

namespace weft::cuda {

/// Throws `DeviceError` with the call, the place and CUDA's text unless `status`, a `cudaError_t`,
/// is `cudaSuccess`. Takes the error out of the thread's last-error slot, so that it is not
/// reported again by a later launch.
void check_cuda(int status, const char* call, const char* file, int line);
/// The same for a `CUresult` of the driver interface.
void check_driver(int status, const char* call, const char* file, int line);
/// The same for a `cublasStatus_t`, of cuBLAS and of cuBLASLt.
void check_cublas(int status, const char* call, const char* file, int line);
/// For the line behind a `<<<…>>>`: throws if the launch of `kernel` was refused. Does not wait for
/// the kernel.
void check_launch(const char* kernel, const char* file, int line);

}  // namespace weft::cuda

/// Each evaluates its argument once: `WEFT_CHECK_CUDA(cudaStreamCreate(&stream));`
#define WEFT_CHECK_CUDA(call) \
  ::weft::cuda::check_cuda(static_cast<int>(call), #call, __FILE__, __LINE__)
#define WEFT_CHECK_DRIVER(call) \
  ::weft::cuda::check_driver(static_cast<int>(call), #call, __FILE__, __LINE__)
#define WEFT_CHECK_CUBLAS(call) \
  ::weft::cuda::check_cublas(static_cast<int>(call), #call, __FILE__, __LINE__)
#define WEFT_CHECK_LAUNCH(kernel) ::weft::cuda::check_launch(kernel, __FILE__, __LINE__)
