#pragma once

// No CUDA header and nothing beyond C++17: included by .cu files and by C++20 code alike.

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace weft::cuda {

/// Elements that collective operations on devices know.
enum class ElementKind : std::uint8_t { I8, U8, I32, U32, I64, U64, F16, BF16, F32, F64 };

/// Size of one element.
constexpr std::size_t element_bytes(ElementKind kind) {
  switch (kind) {
    case ElementKind::I8:
    case ElementKind::U8:
      return 1;
    case ElementKind::F16:
    case ElementKind::BF16:
      return 2;
    case ElementKind::I32:
    case ElementKind::U32:
    case ElementKind::F32:
      return 4;
    case ElementKind::I64:
    case ElementKind::U64:
    case ElementKind::F64:
      return 8;
  }
  return 0;
}

/// What one member of a group brings to an operation: its data, where its result goes (may be the
/// same place, where the operation says so) and the stream of its device that the operation is
/// enqueued on. Borrowed until the stream has passed the operation.
struct CollectivePart {
  const void* from = nullptr;
  void* to = nullptr;
  CUstream_st* stream = nullptr;
};

}  // namespace weft::cuda
