#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weft::mlp {

/// A new empty folder below the test's own, gone with the object.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// An IDX file of bytes.
std::string idx_bytes(const std::vector<std::uint32_t>& extents,
                      const std::vector<std::uint8_t>& elements);

void write_file(const std::filesystem::path& file, const std::string& bytes);
void write_gz(const std::filesystem::path& file, const std::string& bytes);
std::string read_file(const std::filesystem::path& file);

/// A data set of 8x8 pictures in four classes, noisy but easy to learn: `train` and `test` samples.
void write_tiny_data(const std::filesystem::path& folder, std::size_t train = 640,
                     std::size_t test = 200);

}  // namespace weft::mlp
