#include "apps/mlp_tiny_data.hpp"

#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <random>
#include <sstream>

namespace weft::mlp {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kSide = 8, kClasses = 4;

void write_half(const fs::path& folder, const std::string& stem, std::size_t count,
                std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> images, labels;
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::uint8_t>(random() % kClasses);
    labels.push_back(label);
    for (std::uint32_t p = 0; p < kSide * kSide; ++p) {
      const bool bright = p / (kSide * kSide / kClasses) == label;  // a band a class
      images.push_back(static_cast<std::uint8_t>((bright ? 90 : 40) + random() % 120));
    }
  }
  const auto n = static_cast<std::uint32_t>(count);
  write_file(folder / (stem + "-images-idx3-ubyte"), idx_bytes({n, kSide, kSide}, images));
  write_gz(folder / (stem + "-labels-idx1-ubyte.gz"), idx_bytes({n}, labels));
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::string& name)
    : path_(fs::temp_directory_path() / ("weft_" + name + "_" + std::to_string(getpid()))) {
  fs::remove_all(path_);
  fs::create_directories(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string idx_bytes(const std::vector<std::uint32_t>& extents,
                      const std::vector<std::uint8_t>& elements) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(extents.size())};
  for (std::uint32_t extent : extents)
    for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(extent >> shift);
  bytes.append(elements.begin(), elements.end());
  return bytes;
}

void write_file(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

void write_gz(const fs::path& file, const std::string& bytes) {
  gzFile to = gzopen(file.c_str(), "wb");
  gzwrite(to, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(to);
}

std::string read_file(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

void write_tiny_data(const fs::path& folder, std::size_t train, std::size_t test) {
  write_half(folder, "train", train, 1);
  write_half(folder, "t10k", test, 2);
}

}  // namespace weft::mlp
