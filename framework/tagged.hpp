#pragma once

#include <cstdint>

#include "framework/op.hpp"

namespace weft {

/// A producer in `Op::waits()`, whose lowest pointer bit says that it only orders.
inline Op* tag(Op* producer, bool order_only) {
  return reinterpret_cast<Op*>(reinterpret_cast<std::uintptr_t>(producer) | (order_only ? 1u : 0u));
}
inline Op* untagged(Op* tagged) {
  return reinterpret_cast<Op*>(reinterpret_cast<std::uintptr_t>(tagged) & ~std::uintptr_t{1});
}
inline bool is_order_only(Op* tagged) {
  return (reinterpret_cast<std::uintptr_t>(tagged) & 1) != 0;
}

}  // namespace weft
