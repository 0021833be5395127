#pragma once

// No CUDA header and nothing beyond C++17: between tests and a .cu file.

#include <cstddef>

struct CUstream_st;

namespace weft::test {

/// Pinned memory, kept for reuse by size. Any thread. Throws `std::runtime_error`.
void* take_pinned(std::size_t bytes);
void give_pinned(void* data, std::size_t bytes);
/// Asynchronous, in stream order; either side may be pinned or a device's. Throws.
void copy_in_stream(CUstream_st* stream, void* to, const void* from, std::size_t bytes);
/// Calls `function(argument)` on a thread of the driver's, in stream order. Throws.
void call_in_stream(CUstream_st* stream, void (*function)(void*), void* argument);
/// Whether what is enqueued becomes part of a graph. Throws.
bool is_captured(CUstream_st* stream);
/// A kernel that writes where nothing is, which ends the device's context.
void launch_illegal_access(CUstream_st* stream);
/// A launch with more threads a block than any device has; not checked here.
void launch_too_large(CUstream_st* stream);
/// Devices that CUDA shows to this process; 0 without a driver.
int cuda_device_count();

}  // namespace weft::test
