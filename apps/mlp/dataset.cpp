#include "apps/mlp/dataset.hpp"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <string>

namespace weft::mlp {
namespace {

namespace fs = std::filesystem;

fs::path find_file(const fs::path& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    const fs::path file = folder / (name + ending);
    std::error_code ignored;
    if (fs::exists(file, ignored)) return file;
  }
  throw DataError((folder / name).string() +
                  "[.gz]: not there; install the package dataset-fashion-mnist, or give the folder "
                  "of another data set in IDX form with --dataset DIR");
}

/// One half of the data set: `stem` is `train` or `t10k`.
struct Half {
  fs::path images_file, labels_file;
  IdxFile images, labels;
};

Half read_half(const fs::path& folder, const std::string& stem) {
  Half half;
  half.images_file = find_file(folder, stem + "-images-idx3-ubyte");
  half.labels_file = find_file(folder, stem + "-labels-idx1-ubyte");
  half.labels = read_idx(half.labels_file, 1);
  half.images = read_idx(half.images_file, 3);
  if (half.labels.extents[0] != half.images.extents[0])
    throw DataError(half.labels_file.string() + ": has " + std::to_string(half.labels.extents[0]) +
                    " labels for the " + std::to_string(half.images.extents[0]) + " pictures of " +
                    half.images_file.filename().string() +
                    "; the two files must come from the same data set");
  return half;
}

Samples samples_of(Half& half) {
  return {half.labels.extents[0], std::move(half.images.elements), std::move(half.labels.elements)};
}

// Sums of whole numbers: exact, so the same everywhere.
Normal normal_of(const std::vector<std::uint8_t>& pixels, std::size_t places) {
  const std::size_t count = pixels.size() / places;
  std::vector<std::uint64_t> sums(places), squares(places);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t p = 0; p < places; ++p) {
      const std::uint32_t pixel = pixels[i * places + p];
      sums[p] += pixel;
      squares[p] += pixel * pixel;
    }
  std::vector<double> means;
  double variance = 0;
  for (std::size_t p = 0; p < places; ++p) {
    means.push_back(static_cast<double>(sums[p]) / static_cast<double>(count));
    variance += static_cast<double>(squares[p]) / static_cast<double>(count) - means[p] * means[p];
  }
  const double deviation = std::sqrt(variance / static_cast<double>(places));
  Normal normal{static_cast<float>(deviation > 0 ? 1 / deviation : 1), {}};
  for (const double mean : means)
    normal.offsets.push_back(static_cast<float>(-mean * static_cast<double>(normal.scale)));
  return normal;
}

}  // namespace

Dataset read_dataset(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw DataError(folder.string() +
                    ": no such folder; install the package dataset-fashion-mnist, or give the "
                    "folder of a data set in IDX form with --dataset DIR");
  auto other = std::async(std::launch::async, [&] { return read_half(folder, "t10k"); });
  Half train = read_half(folder, "train");
  Half test = other.get();
  if (!std::equal(train.images.extents.begin() + 1, train.images.extents.end(),
                  test.images.extents.begin() + 1))
    throw DataError(test.images_file.string() + ": its pictures have another size than those of " +
                    train.images_file.filename().string() +
                    "; the two files must come from the same data set");
  Dataset data;
  data.inputs = train.images.extents[1] * train.images.extents[2];
  const auto& labels = train.labels.elements;
  data.classes = *std::max_element(labels.begin(), labels.end()) + std::size_t{1};
  const auto& others = test.labels.elements;
  const std::size_t largest = *std::max_element(others.begin(), others.end());
  if (largest >= data.classes)
    throw DataError(test.labels_file.string() + ": has the label " + std::to_string(largest) +
                    ", but those of " + train.labels_file.filename().string() + " end at " +
                    std::to_string(data.classes - 1) +
                    "; the two files must come from the same data set");
  data.fingerprint =
      static_cast<std::uint32_t>(crc32(0, labels.data(), static_cast<unsigned>(labels.size())));
  data.normal = normal_of(train.images.elements, data.inputs);
  data.train = samples_of(train);
  data.test = samples_of(test);
  return data;
}

}  // namespace weft::mlp
