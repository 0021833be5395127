#pragma once

#include <cstddef>
#include <cstdint>

// CUDA's own names for a stream and a cuBLAS handle, so that no CUDA header is needed here.
struct CUstream_st;
struct cublasContext;
struct cublasLtContext;
struct cusolverDnContext;

namespace weft {

/// How products of fp32 matrices may be computed on a GPU. Inputs, outputs and sums are fp32 in all
/// of them.
enum class Precision : std::uint8_t {
  Fp32,  ///< every product in fp32
  Tf32,  ///< inputs rounded to 10 bits of mantissa, on tensor cores
  Bf16,  ///< inputs rounded to 7 bits of mantissa, on tensor cores
};

/// What a CUDA device gives the cuda variant of a kernel: the lane it runs on. The variant enqueues
/// work on `stream()` and returns; it never synchronises. Views point to this device's memory.
/// The device is the thread's current one. Borrowed for the call.
class Cuda {
 public:
  /// The lane, a `cudaStream_t`. Everything the op does must be ordered behind what is in it and in
  /// front of what comes later.
  [[nodiscard]] virtual CUstream_st* stream() const = 0;
  /// A `cublasHandle_t` of this lane, bound to `stream()`, with a workspace. Throws `DeviceError`.
  [[nodiscard]] virtual cublasContext* blas() = 0;
  /// A `cublasLtHandle_t` of this device. Throws `DeviceError`.
  [[nodiscard]] virtual cublasLtContext* blas_lt() = 0;
  /// A `cusolverDnHandle_t` of this lane, bound to `stream()`, made at the first call, which blocks
  /// for some milliseconds. Throws `DeviceError`, also if cuSOLVER cannot be loaded.
  [[nodiscard]] virtual cusolverDnContext* solver() = 0;
  /// Number of the device, as CUDA counts.
  [[nodiscard]] virtual int device() const = 0;
  /// What the runtime's options ask of matrix products.
  [[nodiscard]] virtual Precision precision() const = 0;
  /// Whether the runtime's options ask to look for the fastest algorithm of products that come
  /// often.
  [[nodiscard]] virtual bool tunes_products() const { return false; }
  /// At least `bytes` of this device's memory, 256-byte aligned, undefined contents, the op's own
  /// until its last work on the stream. A second call in one op gives the same memory again.
  /// Throws `DeviceError` if the device has none left.
  [[nodiscard]] virtual void* scratch(std::size_t bytes) = 0;
  /// Sets `bytes` at `data`, in this device's memory, to zero, in stream order.
  virtual void clear(void* data, std::size_t bytes) = 0;

 protected:
  ~Cuda() = default;
};

}  // namespace weft
