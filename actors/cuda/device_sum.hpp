#pragma once

#include <cstddef>

#include "framework/own_kernels.hpp"

struct CUstream_st;

namespace weft::cuda {

/// `into += from` on a device: enqueues and returns.
using DeviceSum = void (*)(CUstream_st* stream, void* into, const void* from, std::size_t count);

/// What does on a device what `sum` does on the host. `element_bytes` and `where` are for the
/// message: throws `UsageError` for an element type that no device adds up.
DeviceSum device_sum_of(SumFunction sum, std::size_t element_bytes, const char* where);

}  // namespace weft::cuda
