#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/device.hpp"
#include "framework/tensor.hpp"

namespace weft {

/// The rows of one tensor (its first dimension) in blocks, each a tensor of its own: what `Rows`
/// refers to. Used by one thread at a time.
struct RowBlocks {
  struct Block {
    std::int64_t first = 0, count = 0;
    TensorHandle tensor;  ///< empty: no rows, or never written
  };
  Fabric* fabric = nullptr;
  Shape shape;  ///< of all rows
  std::uint32_t element_bytes = 0, element_type = 0;
  std::vector<Block> blocks;  ///< by part once cut; whoever gives a whole tensor gives one
  bool has_value = false;

  [[nodiscard]] std::int64_t rows() const { return shape[0]; }
  /// Of `count` rows.
  [[nodiscard]] Shape shape_of(std::int64_t count) const;
  [[nodiscard]] std::size_t row_bytes() const;
};

/// What becomes of values when rows are cut anew.
enum class OldRows : std::uint8_t {
  Dropped,  ///< they do not matter
  Kept,     ///< blocks that stay as they are keep their tensors
  Copied,   ///< all get tensors of their own
};

/// Cuts anew: block i has the rows from `cuts[i]` to `cuts[i + 1]`, put together on `devices[i]`
/// from the blocks there were. Submits copies; waits for nothing but admission.
void recut(RowBlocks& rows, const std::vector<std::int64_t>& cuts, std::span<const Device> devices,
           OldRows old);

/// All rows as one tensor, put together on `device`. Throws `UsageError` if they have no value.
TensorHandle join_rows(const RowBlocks& rows, const Device& device);

}  // namespace weft
