#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "apps/mlp/idx.hpp"

namespace weft::mlp {

/// Pictures and what is on them.
struct Samples {
  std::size_t count = 0;
  std::vector<std::uint8_t> images;  ///< [count, inputs]
  std::vector<std::uint8_t> labels;  ///< [count]
};

/// What makes a pixel a number: `scale * pixel + offsets[its place in the picture]`, so that over
/// the training set every place has mean 0 and all together deviation 1.
struct Normal {
  float scale = 1;
  std::vector<float> offsets;
};

/// A data set in IDX form, such as Fashion-MNIST or MNIST.
struct Dataset {
  std::size_t inputs = 0;   ///< pixels of a picture
  std::size_t classes = 0;  ///< labels are 0 to classes - 1
  Samples train, test;
  Normal normal;
  std::uint32_t fingerprint = 0;  ///< CRC-32 of the training labels
};

/// Where Debian's package dataset-fashion-mnist puts it.
inline constexpr const char* kDefaultFolder = "/usr/share/datasets/fashion-mnist";
/// `WEFT_DATA_DIR`, else that folder.
inline std::string default_folder() {
  const char* set = std::getenv("WEFT_DATA_DIR");
  return set && *set ? set : kDefaultFolder;
}

/// Reads `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and
/// `t10k-labels-idx1-ubyte`, each with or without `.gz`. Throws `DataError` for what is missing,
/// damaged or does not fit together.
Dataset read_dataset(const std::filesystem::path& folder);

}  // namespace weft::mlp
