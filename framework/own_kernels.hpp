#pragma once

#include <cstddef>

#include "framework/kernel_code.hpp"

namespace weft {

/// How a tensor's contributions are added on the host: `into += from`, `count` elements. Stands for
/// the element type, too: engines map it to a sum of their own.
using SumFunction = void (*)(void* into, const void* from, std::size_t count);

/// Kernels that weft submits by itself, without types. An engine adds its variant to each before
/// the first op of a runtime.

/// Source and target in one memory: argument 1 becomes argument 0.
KernelCode& local_copy_kernel();
/// Argument 0 gains the sum of the others, in their order; if its access is `Out`, it becomes the
/// sum. How they are added: `sum_partial` of its tensor.
KernelCode& sum_partials_kernel();

/// Bytes of argument 0 that become bytes of argument 1, which may be written for the first time.
struct ByteRange {
  std::size_t from_offset = 0, to_offset = 0, bytes = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
/// Its only scalar is a `ByteRange`.
KernelCode& row_copy_kernel();

}  // namespace weft
