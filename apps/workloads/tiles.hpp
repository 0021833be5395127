#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>
#include <weft/weft.hpp>

#include "apps/workloads/tile_kernels.hpp"
#include "apps/workloads/workload.hpp"

namespace weft::workloads {

/// Devices as a grid as square as their number allows: tile (i, j) of a matrix belongs to the
/// device at (i mod rows, j mod columns), as in ScaLAPACK's block-cyclic distribution
/// (https://netlib.org/scalapack/slug/node75.html).
class BlockCyclic {
 public:
  explicit BlockCyclic(std::vector<Device> devices);
  [[nodiscard]] const Device& owner(std::int64_t i, std::int64_t j) const;

 private:
  std::vector<Device> devices_;
  std::int64_t rows_ = 1, columns_ = 1;
};

/// The parameter `placement` of a workload with tiles: `owner`, or a policy that places each op
/// among the run's devices.
Parameter placement_parameter();
/// The policy of that name (see `make_placement`) among some devices of a runtime only.
std::shared_ptr<PlacementPolicy> placement_among(const std::string& name,
                                                 const std::vector<Device>& devices);
/// Where the tiles go by that parameter. With a policy, the grid is one device: any of them.
BlockCyclic tile_grid(const Context& context);

/// A square matrix of n x n cut into tiles of tile x tile, row by row; those at the edges are
/// smaller.
class Tiles {
 public:
  Tiles(std::int64_t n, std::int64_t tile);
  [[nodiscard]] std::int64_t count() const { return count_; }  ///< in a row
  [[nodiscard]] std::int64_t extent(std::int64_t i) const;     ///< of the i-th

  /// Tensors of the tiles for which `wanted(i, j)` and nothing for the others; `fill` writes one.
  void make(const std::function<bool(std::int64_t, std::int64_t)>& wanted,
            const std::function<Tensor<float>(std::int64_t i, std::int64_t j)>& fill);
  [[nodiscard]] Tensor<float>& at(std::int64_t i, std::int64_t j);

  /// All of it on the host, zeros where there is no tile. Waits.
  [[nodiscard]] std::vector<float> to_host() const;
  /// Done when all tiles are. Waits.
  void wait() const;

 private:
  std::int64_t n_, tile_, count_;
  std::vector<Tensor<float>> tiles_;
};

}  // namespace weft::workloads
