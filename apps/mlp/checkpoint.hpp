#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/mlp/network.hpp"

namespace weft::mlp {

/// A checkpoint cannot be written, read or used. `what()` names the file and what to do.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Training after a whole number of epochs: all that is needed to go on to the same numbers.
///
/// The file, all numbers little-endian:
///
///     8 bytes   "weft-mlp"
///     u32       version, 1
///     u32       length L of the header
///     L bytes   the header, JSON: {"inputs", "hidden", "classes", "batch", "lr", "momentum",
///               "seed", "epoch", "samples", "labels_crc32", "devices": [...], "shares": [...]}
///     f32 ...   w1 [inputs + 1, hidden], w2 [hidden + 1, classes], row-major, a layer's bias as
///               its last row (without the zeros that devices hold behind it); with momentum the
///               velocities v1, v2 in the same shapes
///     u32       CRC-32 (as in gzip) of everything before it
struct Checkpoint {
  Hyper hyper;
  std::uint64_t epoch = 0;        ///< epochs done
  std::size_t samples = 0;        ///< of the training set
  std::uint32_t fingerprint = 0;  ///< `Dataset::fingerprint`
  std::vector<std::string> devices;
  std::vector<double> shares;  ///< weights, one a device
  Parameters parameters;
};

/// Writes beside the file first and then puts it in place, so that a crash leaves the old one.
/// Throws `CheckpointError`.
void write_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

/// Throws `CheckpointError` for a file that is missing, damaged, of another version or whose parts
/// do not fit together.
Checkpoint read_checkpoint(const std::filesystem::path& file);

}  // namespace weft::mlp
