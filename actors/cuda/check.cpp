#include "actors/cuda/check.hpp"

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>

#include "framework/failure.hpp"

namespace weft::cuda {
namespace {

[[noreturn]] void fail(const char* call, const std::string& text, const char* file, int line) {
  const char* name = std::strrchr(file, '/');
  throw DeviceError(std::string(call) + ": " + text + " (" + (name ? name + 1 : file) + ":" +
                    std::to_string(line) + ")");
}

std::string text_of(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + ", " + cudaGetErrorName(error);
}

}  // namespace

void check_cuda(int status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  fail(call, text_of(static_cast<cudaError_t>(status)), file, line);
}

void check_driver(int status, const char* call, const char* file, int line) {
  if (status == CUDA_SUCCESS) return;
  // The driver's texts come from the driver's library, which is not linked: its numbers are those
  // of the runtime wherever both have a name for the error.
  fail(call, text_of(static_cast<cudaError_t>(status)) + ", driver code " + std::to_string(status),
       file, line);
}

void check_cublas(int status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const auto error = static_cast<cublasStatus_t>(status);
  fail(call, std::string(cublasGetStatusString(error)) + ", " + cublasGetStatusName(error), file,
       line);
}

void check_launch(const char* kernel, const char* file, int line) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  fail(kernel, "the launch was refused: " + text_of(error), file, line);
}

}  // namespace weft::cuda
