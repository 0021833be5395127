#include "apps/mlp/idx.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

namespace weft::mlp {
namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr std::size_t kMostElements = std::size_t{1} << 34;

struct CloseGz {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

/// zlib reads a file that is not compressed as it is, so one reader serves both.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {
    errno = 0;
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_)
      throw DataError(path.string() + ": cannot be opened (" + std::strerror(errno) +
                      "); give another folder with --dataset DIR");
    gzbuffer(file_.get(), 1 << 18);
  }

  /// Up to `count` bytes; fewer only at the end of the file.
  std::size_t read(std::uint8_t* to, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
      const auto part = static_cast<unsigned>(std::min<std::size_t>(count - done, 1 << 28));
      const int got = gzread(file_.get(), to + done, part);
      int code = Z_OK;
      const char* message = gzerror(file_.get(), &code);
      if (got < 0 || (code != Z_OK && code != Z_BUF_ERROR)) {
        const char* why = code == Z_ERRNO ? std::strerror(errno) : message;
        refuse(std::string("is damaged (") + why + ")");
      }
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError(path_.string() + ": " + what +
                    "; fetch the file again, install the package dataset-fashion-mnist, or give "
                    "another folder with --dataset DIR");
  }

 private:
  const std::filesystem::path& path_;
  std::unique_ptr<gzFile_s, CloseGz> file_;
};

std::string hex(const std::array<std::uint8_t, 4>& bytes) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2],
                bytes[3]);
  return text.data();
}

}  // namespace

IdxFile read_idx(const std::filesystem::path& path, std::size_t dimensions) {
  Reader reader(path);
  std::array<std::uint8_t, 4> word{};
  if (reader.read(word.data(), word.size()) < word.size())
    reader.refuse("ends inside the header, so it is no IDX file");
  const std::array<std::uint8_t, 4> wanted{0, 0, kUnsignedByte,
                                           static_cast<std::uint8_t>(dimensions)};
  if (word != wanted)
    reader.refuse("begins with " + hex(word) + " instead of " + hex(wanted) +
                  ", so it is no IDX file of bytes with " + std::to_string(dimensions) +
                  (dimensions == 1 ? " dimension" : " dimensions"));
  IdxFile file;
  std::size_t size = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    if (reader.read(word.data(), word.size()) < word.size())
      reader.refuse("ends inside the header");
    const std::size_t extent = std::size_t{word[0]} << 24 | std::size_t{word[1]} << 16 |
                               std::size_t{word[2]} << 8 | word[3];
    if (extent == 0) reader.refuse("holds nothing: one of its extents is 0");
    if (size > kMostElements / extent) reader.refuse("has extents that cannot be true");
    size *= extent;
    file.extents.push_back(extent);
  }
  // Grown as the bytes come, so that a header that lies does not take memory.
  constexpr std::size_t kPart = 64 << 20;
  while (file.elements.size() < size) {
    const std::size_t before = file.elements.size(), part = std::min(kPart, size - before);
    file.elements.resize(before + part);
    const std::size_t got = reader.read(file.elements.data() + before, part);
    if (got < part)
      reader.refuse("ends after " + std::to_string(before + got) + " of the " +
                    std::to_string(size) + " elements that its header promises");
  }
  std::uint8_t more = 0;
  if (reader.read(&more, 1) != 0)
    reader.refuse("goes on after the " + std::to_string(size) +
                  " elements that its header promises");
  return file;
}

}  // namespace weft::mlp
