#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace weft::bench {

/// One op of a tiled Cholesky factorisation of the lower triangle, on tile (i, j).
struct CholeskyStep {
  enum class Kind : std::uint8_t {
    Factor,   ///< (j, j) becomes its factor; i = k = j
    Solve,    ///< (i, j) by (j, j), i > j; k = j
    Product,  ///< (i, j) -= (i, k)·(j, k)ᵀ, i > j > k
    Square,   ///< (j, j) -= (j, k)·(j, k)ᵀ, j > k; i = j
  };
  Kind kind;
  std::int64_t i, j, k;
};

/// Calls `visit` with every step for `count` x `count` tiles, in an order that may be submitted as
/// it is.
///
/// Columns are taken in panels of `panel`: first all columns to the left are applied to a panel, a
/// row of tiles after the other, so that each tile to the left is read once a panel; then the panel
/// is factored, right-looking. So a panel of half a memory's size moves about n³ / (3 · panel)
/// elements, of tile columns, where right-looking moves all that remains in every step; a panel of
/// all columns is right-looking. Within a panel the next column is updated and its diagonal tile
/// factored ahead of the rest, for devices that take their ops in order.
void for_each_step(std::int64_t count, std::int64_t panel,
                   const std::function<void(const CholeskyStep&)>& visit);

/// How many columns a panel should have where `budget` bytes hold tiles of `tile_bytes`: all if the
/// whole triangle fits, else as many as half of it holds; at least 1.
std::int64_t panel_columns(std::int64_t count, std::size_t tile_bytes, std::size_t budget);

}  // namespace weft::bench
