#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <vector>

namespace weft::mlp {

/// A file of the data set is missing, damaged or does not fit the others. `what()` names the file,
/// what is wrong and what to do.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The content of an IDX file of bytes.
struct IdxFile {
  std::vector<std::size_t> extents;    ///< as many as were asked for, each at least 1
  std::vector<std::uint8_t> elements;  ///< row-major
};

/// Reads an IDX file of unsigned bytes with `dimensions` dimensions, plain or gzip-compressed.
///
/// The format: two zero bytes, the element type (8: unsigned byte), the number of dimensions, each
/// extent as a big-endian 32-bit number, the elements. Throws `DataError` for anything else, for a
/// file that ends early or goes on after its last element, and for a damaged gzip stream.
IdxFile read_idx(const std::filesystem::path& file, std::size_t dimensions);

}  // namespace weft::mlp
