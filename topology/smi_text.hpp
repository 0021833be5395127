#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// How close two devices of an `nvidia-smi topo -m` matrix are by PCIe, closest first.
enum class SmiRelation : std::uint8_t { Self, Pix, Pxb, Phb, Node, Sys, Unknown };

/// The matrix of an `nvidia-smi topo -m` text, as it stands there.
struct SmiMatrix {
  struct Device {
    std::string name;  ///< `GPU0`, `NIC0`, `mlx5_0`
    bool is_gpu = false;
    std::size_t line = 0;
    std::vector<SmiRelation> relations;  ///< by index of the other device
    std::vector<std::uint32_t> nvlinks;  ///< by index of the other device; 0 for none
    std::size_t affinity = 0;            ///< index into `affinities`
    std::int64_t numa = -1;
  };
  std::vector<Device> devices;  ///< GPUs in numerical order, then NICs as they come
  /// Sets of hardware threads, each once; the first is empty: not stated.
  std::vector<std::vector<std::uint32_t>> affinities = {{}};
  bool hides_nvlinks = false;  ///< made by `topo -mp`
};

/// True if the text has a line that looks like a matrix's header.
bool looks_like_smi_matrix(std::string_view text);

/// Reads tabs or blanks, ANSI codes, CR LF, shell comments, legends around, missing and swapped
/// rows and columns. Throws `TopologyError` naming line and cell.
SmiMatrix parse_smi_matrix(std::string_view text, const std::string& name);

}  // namespace weft
