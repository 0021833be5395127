#pragma once

#include <cstddef>

namespace weft::cuda {

/// `memcpy` that writes past the caches, for blocks that nobody reads soon. No overlap.
void copy_streaming(void* to, const void* from, std::size_t bytes);

}  // namespace weft::cuda
