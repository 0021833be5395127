#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace weft {

/// A file without a name in a directory, where a runtime keeps bytes that fit into no memory. The
/// system takes it away with the process, however that ends.
///
/// Space is handed out as *tokens*: an offset in the shape of a pointer, which must not be
/// followed. The file system's space is set aside with it, so that a full disk is found out there
/// and not by a write. Any thread.
class SpillFile {
 public:
  /// Throws `DeviceError` naming the directory if no file can be made there.
  explicit SpillFile(std::string directory);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// Space for `bytes`; null if the file system has none left. Blocks as the system does.
  void* allocate(std::size_t bytes);
  /// Gives it back to the file system.
  void free(void* token, std::size_t bytes);

  /// Moves `bytes` between memory and the space of `token`, from `offset` on. Blocks. Empty, or the
  /// call that failed and the system's reason.
  std::string write(const void* from, void* token, std::size_t offset, std::size_t bytes);
  std::string read(void* into, const void* token, std::size_t offset, std::size_t bytes);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  /// What is free in the file system now, in bytes.
  [[nodiscard]] std::size_t free_bytes() const;
  /// The open file, for tests of what happens when the system refuses.
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  std::uint64_t take_space(std::size_t bytes);
  void give_space(std::uint64_t offset, std::size_t bytes);

  const std::string directory_;
  int descriptor_ = -1;
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> gaps_;  // offset: bytes; neighbours are joined
  std::uint64_t end_;                            // nothing is handed out from here on
};

}  // namespace weft
