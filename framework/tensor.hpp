#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/fabric.hpp"
#include "framework/future.hpp"
#include "framework/tensor_state.hpp"

namespace weft {

/// A number for an element type, to tell tensors apart at run time.
template <class T>
constexpr std::uint32_t element_type_of() {
  return static_cast<std::uint32_t>(sizeof(T)) | (std::is_floating_point_v<T> ? 0x100u : 0u) |
         (std::is_signed_v<T> ? 0x200u : 0u) | (std::is_integral_v<T> ? 0x400u : 0u);
}

/// Counts one handle of a tensor. May be dropped as soon as the last op that uses it is submitted.
class TensorHandle {
 public:
  TensorHandle() = default;
  explicit TensorHandle(TensorState* state) : state_(state) {}
  TensorHandle(const TensorHandle& other) : state_(other.state_) {
    if (state_) state_->handles.fetch_add(1, std::memory_order_relaxed);
  }
  TensorHandle(TensorHandle&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  TensorHandle& operator=(TensorHandle other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~TensorHandle() {
    if (state_) drop_handle(state_);
  }

  [[nodiscard]] TensorState* state() const { return state_; }
  explicit operator bool() const { return state_ != nullptr; }

 private:
  TensorState* state_ = nullptr;
};

/// Implementation of `Tensor::to_host`.
TensorHandle copy_to_host(TensorState* source, Future& copied);
/// Implementation of `Tensor::copy_to`.
Future copy_to_program(TensorState* source, std::span<std::byte> into);
/// Implementation of `Device::copy_from`.
TensorHandle copy_from_program(Fabric& fabric, Place& place, std::span<const std::byte> from,
                               const Shape& shape, std::uint32_t element_bytes,
                               std::uint32_t element_type);
/// The future of the last write; empty if there is none.
Future last_write(TensorState* tensor);

/// The value of a tensor at one point of the program, in host memory. Filled by a copy that runs
/// behind the op that computes it.
template <class T>
class HostArray {
 public:
  HostArray() = default;
  HostArray(TensorHandle handle, Future future)
      : handle_(std::move(handle)), future_(std::move(future)) {}

  /// Done when the bytes are here.
  [[nodiscard]] const Future& future() const { return future_; }
  /// Blocks until they are; as `Future::wait`.
  void wait() const { future_.wait(); }
  auto operator co_await() const { return future_.operator co_await(); }

  [[nodiscard]] const Shape& shape() const { return handle_.state()->shape; }
  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(handle_.state()->shape.size());
  }
  /// The elements, row-major. Waits for them, and throws, as `wait` does.
  [[nodiscard]] std::span<const T> span() const {
    wait();
    return {static_cast<const T*>(handle_.state()->replicas[0]->data), size()};
  }
  const T& operator[](std::size_t i) const { return span()[i]; }
  [[nodiscard]] std::vector<T> to_vector() const {
    const auto all = span();
    return {all.begin(), all.end()};
  }

 private:
  TensorHandle handle_;
  Future future_;
};

/// Logical data with a shape; its bytes are wherever ops need them. A cheap handle: copies name the
/// same tensor. May be dropped the moment its last op is submitted. Used by any thread.
template <class T>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied between memories as bytes");

 public:
  Tensor() = default;
  explicit Tensor(TensorHandle handle) : handle_(std::move(handle)) {}

  [[nodiscard]] const Shape& shape() const { return handle_.state()->shape; }
  [[nodiscard]] std::int64_t size() const { return shape().size(); }
  [[nodiscard]] TensorState* state() const { return handle_.state(); }
  explicit operator bool() const { return bool(handle_); }

  /// Its value as of now in program order, copied to host memory over the links, behind the ops
  /// that compute it. Returns at once.
  [[nodiscard]] HostArray<T> to_host() const {
    Future copied;
    TensorHandle target = copy_to_host(handle_.state(), copied);
    return HostArray<T>(std::move(target), std::move(copied));
  }

  /// Its value as of now in program order, copied into the program's own memory, which must live
  /// until the future has settled and may be pageable: it goes through pinned memory then. Copies
  /// to the same place are in no order unless one is waited for. Waits at memory limits only.
  /// Throws `UsageError` if the count is not the tensor's.
  [[nodiscard]] Future copy_to(std::span<T> into) const {
    return copy_to_program(handle_.state(), std::as_writable_bytes(into));
  }

  /// Done when the last op that writes it is. For `wait`, `then`, `co_await`.
  [[nodiscard]] Future future() const { return last_write(handle_.state()); }

 private:
  TensorHandle handle_;
};

/// An argument of a submission: a tensor and how the kernel uses it.
template <class T, Access kMode>
struct TensorArgument {
  static constexpr Access kAccess = kMode;
  using Element = T;
  TensorState* tensor;
};

template <class T>
TensorArgument<T, Access::In> in(const Tensor<T>& tensor) {
  return {tensor.state()};
}
template <class T>
TensorArgument<T, Access::Out> out(const Tensor<T>& tensor) {
  return {tensor.state()};
}
template <class T>
TensorArgument<T, Access::InOut> inout(const Tensor<T>& tensor) {
  return {tensor.state()};
}
/// The kernel contributes to a sum; see `Reduce`.
template <class T>
TensorArgument<T, Access::Reduce> reduce(const Tensor<T>& tensor) {
  return {tensor.state()};
}

/// A further thing to wait for, as the last argument of a submission.
struct After {
  Future future;
};
inline After after(Future future) {
  return {std::move(future)};
}

}  // namespace weft
