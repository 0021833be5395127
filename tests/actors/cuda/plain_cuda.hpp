#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/cuda/solver.hpp"
#include "framework/cuda.hpp"

namespace weft::test {

/// Why no CUDA device can be used; empty if one can.
std::string no_gpu_reason();

/// The device's memory for tests: one allocation, filled with `0xff` bytes, which are NaNs, at
/// first, and with as many on both sides, so that writes beside it are seen.
class DeviceBytes {
 public:
  /// Begins `offset` bytes behind an address that is a multiple of 256.
  explicit DeviceBytes(std::size_t bytes, std::size_t offset = 0);
  ~DeviceBytes();
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  [[nodiscard]] void* data() const;
  void upload(const void* from);
  /// Waits for the device. Throws `std::runtime_error` if a byte beside the data has changed.
  void download(void* to) const;

 private:
  std::size_t bytes_, offset_;
  char* block_ = nullptr;
};

/// `DeviceBytes` as elements.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count, std::size_t offset_elements = 0)
      : count_(count), bytes_(count * sizeof(T), offset_elements * sizeof(T)) {}
  explicit DeviceArray(const std::vector<T>& values, std::size_t offset_elements = 0)
      : DeviceArray(values.size(), offset_elements) {
    bytes_.upload(values.data());
  }
  [[nodiscard]] T* data() const { return static_cast<T*>(bytes_.data()); }
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> all(count_);
    bytes_.download(all.data());
    return all;
  }

 private:
  std::size_t count_;
  DeviceBytes bytes_;
};

/// What a kernel's cuda variant needs, over one plain stream of device 0, without an engine.
class PlainCuda final : public Cuda {
 public:
  PlainCuda();
  ~PlainCuda();
  PlainCuda(const PlainCuda&) = delete;
  PlainCuda& operator=(const PlainCuda&) = delete;

  [[nodiscard]] CUstream_st* stream() const override { return stream_; }
  [[nodiscard]] cublasContext* blas() override;
  [[nodiscard]] cublasLtContext* blas_lt() override;
  [[nodiscard]] cusolverDnContext* solver() override;
  [[nodiscard]] int device() const override { return 0; }
  [[nodiscard]] Precision precision() const override { return precision_; }
  [[nodiscard]] bool tunes_products() const override { return tunes_; }
  /// Poisoned at each call, unless told otherwise.
  [[nodiscard]] void* scratch(std::size_t bytes) override;
  void clear(void* data, std::size_t bytes) override;

  /// Time of one `enqueue` on the device alone: the median of some launches of a graph that holds
  /// it many times. It must not wait for anything.
  double device_microseconds(const std::function<void()>& enqueue);
  /// Time that `enqueue` takes the host when the device has nothing else to do: the median.
  double host_microseconds(const std::function<void()>& enqueue);
  /// Scratch is left as it is, so that times are those of the kernels.
  void keep_scratch() { poisons_ = false; }

  void set_precision(Precision precision) { precision_ = precision; }
  void tune_products() { tunes_ = true; }
  void synchronise();

 private:
  CUstream_st* stream_ = nullptr;
  cublasContext* blas_ = nullptr;
  cublasLtContext* blas_lt_ = nullptr;
  std::unique_ptr<cuda::SolverHandle> solver_;
  void* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  bool poisons_ = true;
  bool tunes_ = false;
  Precision precision_ = Precision::Fp32;
};

}  // namespace weft::test
