#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "topology/machine.hpp"

namespace weft {

/// Copies in one direction between two memories, host or GPU.
struct LinkFlow {
  Node from, to;  ///< a memory of the host, or a GPU
  friend bool operator==(const LinkFlow&, const LinkFlow&) = default;
};

/// Which copies load a link: all of `under_test[0]` at once in its direction `a` to `b`,
/// `under_test[1]` back. `neighbours[i]` are what runs beside `under_test[i]`.
struct LinkFlows {
  std::array<std::vector<LinkFlow>, 2> under_test, neighbours;
};

/// The copies that measure a link between and below GPUs that can be used (`is_usable`, by
/// `GpuId`); nothing if none cross it. Pure: tested without a GPU.
std::optional<LinkFlows> flows_of_link(const Machine& machine, LinkId link,
                                       const std::vector<bool>& is_usable);

}  // namespace weft
