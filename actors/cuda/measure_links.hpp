#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "topology/machine.hpp"
#include "topology/measurements.hpp"

namespace weft {

/// Measures the links of a machine that CUDA copies cross: PCIe and C2C between host and GPU,
/// NVLinks between GPUs and to their switches.
///
/// Copies are of 128 MiB, from host memory that is pinned and near the GPU, and between GPUs; each
/// figure is the median of several rounds after a warm-up. A GPU's link to a switch is measured by
/// copies to another GPU of that switch, a PCIe switch's uplink by copies to all GPUs below it at
/// once. With neighbours busy: the other GPUs copy from or to the host as well, and for NVLinks
/// both directions run. Latency is the time of one copy of 64 bytes in a row of them.
///
/// Makes contexts on the GPUs it uses and 128 MiB of memory for each copy that runs. Blocks. One
/// thread at a time. Calls throw `TopologyError` naming the CUDA call that failed.
class CudaLinkMeter {
 public:
  /// `ordinals`: CUDA's number of each GPU of `machine`, -1 for one that is left alone; see
  /// `cuda_ordinals`.
  CudaLinkMeter(const Machine& machine, std::vector<int> ordinals);
  ~CudaLinkMeter();
  CudaLinkMeter(const CudaLinkMeter&) = delete;
  CudaLinkMeter& operator=(const CudaLinkMeter&) = delete;

  /// Nothing for a link that no CUDA copy crosses, or whose ends have no peer access.
  [[nodiscard]] std::optional<LinkFigures> measure(LinkId link);

  /// Pairs of GPUs with peer access whose direct copies arrive damaged.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> damaged_peers();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
