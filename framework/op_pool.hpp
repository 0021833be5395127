#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace weft {

/// Blocks for ops in classes of 64 bytes, recycled through a cache per thread. Process-wide; blocks
/// never go back to the operating system, so a stale pointer always points at some op block.
/// Any thread; does not block but for a short lock once per batch of blocks.
namespace op_pool {

/// A block of at least `bytes`, aligned to 64. `size_class` receives what `free` needs.
void* allocate(std::size_t bytes, std::uint8_t& size_class);
/// Takes it back. Where an op keeps its references there must be 0.
void free(void* block, std::uint8_t size_class);

/// Blocks handed out and not returned, over all threads. Exact only while nothing is in flight.
std::int64_t live();

/// Calls `visit` for each block of a slab that has room for an op, in use or not. Blocks from the
/// heap, of more than 1 KiB, are left out. For diagnosis.
void for_each_op_block(const std::function<void(void*)>& visit);

}  // namespace op_pool
}  // namespace weft
