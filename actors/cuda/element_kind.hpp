#pragma once

#include <cstdint>

struct CUstream_st;

namespace weft::cuda {

enum class ElementKind : std::uint8_t { I8, U8, I32, U32, I64, U64, F16, BF16, F32, F64 };

/// One member's part of a collective operation.
struct CollectivePart {
  const void* from = nullptr;
  void* to = nullptr;
  CUstream_st* stream = nullptr;
};

}  // namespace weft::cuda
