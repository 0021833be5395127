#pragma once

#include <cstddef>

#include "framework/own_kernels.hpp"

namespace weft {

/// A step of a collective within one member's memory, run by its device: the scalar of an op whose
/// arguments are into, from.
struct CollectiveLocalStep {
  std::size_t into_offset = 0, from_offset = 0, bytes = 0;
  std::size_t element_bytes = 1;
  SumFunction sum = nullptr;  ///< `into += from`; null: copy
};

/// The kernel of such steps. An engine adds its variant before the first op of a runtime.
KernelCode& collective_step_kernel();

}  // namespace weft
