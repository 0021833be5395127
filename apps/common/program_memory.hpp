#pragma once

#include <concepts>
#include <span>
#include <utility>

#include "framework/device.hpp"

namespace weft::apps {

// Copies to and from the program's own memory, which nobody pinned. A build whose devices do not
// offer them says so through `copies_program_memory` instead of failing to compile.

/// Whether `Tensor::copy_to(span)` and `Device::from_host(span, shape)` are there.
template <class TensorT = Tensor<float>, class DeviceT = Device>
constexpr bool copies_program_memory() {
  return requires(const TensorT& tensor, const DeviceT& device, std::span<float> memory,
                  const Shape& shape) {
    { tensor.copy_to(memory) } -> std::convertible_to<Future>;
    {
      device.from_host(std::span<const float>(memory), shape)
      } -> std::convertible_to<Tensor<float>>;
  };
}

/// Copies the value that `tensor` has now to `into`, of the same size, which lives until the future
/// is settled. Throws `UsageError` where this is not offered.
template <class T, class TensorT = Tensor<T>>
Future copy_to_program(const TensorT& tensor, std::span<T> into) {
  if constexpr (copies_program_memory<>() && requires { tensor.copy_to(into); })
    return tensor.copy_to(into);
  else
    throw UsageError("copy_to: this build cannot copy to the program's own memory");
}

/// A tensor in `device`'s memory with a copy of `values`, which live until its future is settled.
/// Throws `UsageError` where this is not offered.
template <class T, class DeviceT = Device>
Tensor<T> copy_from_program(const DeviceT& device, std::span<const T> values, const Shape& shape) {
  if constexpr (requires { device.from_host(values, shape); })
    return device.from_host(values, shape);
  else
    throw UsageError("from_host: this build cannot copy from the program's own memory");
}

}  // namespace weft::apps
