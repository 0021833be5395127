#include "actors/storage/spill_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <system_error>
#include <utility>

#include "framework/failure.hpp"

namespace weft {
namespace {

// No space begins at 0: that token would be a null pointer.
constexpr std::uint64_t kBegin = 4096;

std::string system_reason(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void refuse_spill(const std::string& directory, const std::string& why) {
  throw DeviceError("spill \"" + directory + "\": " + why +
                    "; wanted a directory in which files can be written");
}

// Where the file system cannot make files without a name, one is made and its name taken away.
int open_without_name(const std::string& directory) {
  const int made = open(directory.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (made >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return made;
  std::string name = directory + "/weft-spill-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

std::uint64_t offset_of(const void* token) {
  return reinterpret_cast<std::uintptr_t>(token);
}

// Repeats `call(done)` until all is moved; the system may move less than asked for.
template <class Call>
std::string move_all(const char* name, std::size_t bytes, const Call& call) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t moved = call(done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return std::string(name) + ": " + system_reason(errno);
    if (moved == 0)
      return std::string(name) + ": " + std::to_string(done) + " of " + std::to_string(bytes) +
             " bytes, then the file ended";
    done += static_cast<std::size_t>(moved);
  }
  return "";
}

}  // namespace

SpillFile::SpillFile(std::string directory) : directory_(std::move(directory)), end_(kBegin) {
  struct stat status {};
  if (stat(directory_.c_str(), &status) != 0) refuse_spill(directory_, system_reason(errno));
  if (!S_ISDIR(status.st_mode)) refuse_spill(directory_, "is no directory");
  descriptor_ = open_without_name(directory_);
  if (descriptor_ < 0)
    refuse_spill(directory_, "no file can be made there: " + system_reason(errno));
}

SpillFile::~SpillFile() {
  close(descriptor_);
}

void* SpillFile::allocate(std::size_t bytes) {
  const std::uint64_t offset = take_space(bytes);
  int error = 0;
  do {
    error = posix_fallocate(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error == 0) return reinterpret_cast<void*>(offset);
  free(reinterpret_cast<void*>(offset), bytes);  // a part of it may have been set aside
  return nullptr;
}

void SpillFile::free(void* token, std::size_t bytes) {
  // If it cannot be given back the file keeps it, for whoever comes next.
  (void)fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(offset_of(token)), static_cast<off_t>(bytes));
  give_space(offset_of(token), bytes);
}

// The first gap that is large enough, else the end.
std::uint64_t SpillFile::take_space(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    const auto [offset, there] = *gap;
    if (there < bytes) continue;
    gaps_.erase(gap);
    if (there > bytes) gaps_[offset + bytes] = there - bytes;
    return offset;
  }
  return std::exchange(end_, end_ + bytes);
}

void SpillFile::give_space(std::uint64_t offset, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  auto gap = gaps_.emplace(offset, bytes).first;
  if (gap != gaps_.begin()) {
    const auto before = std::prev(gap);
    if (before->first + before->second == gap->first) {
      before->second += gap->second;
      gaps_.erase(gap);
      gap = before;
    }
  }
  const auto behind = std::next(gap);
  if (behind != gaps_.end() && gap->first + gap->second == behind->first) {
    gap->second += behind->second;
    gaps_.erase(behind);
  }
  if (gap->first + gap->second != end_) return;
  end_ = gap->first;
  gaps_.erase(gap);
}

std::string SpillFile::write(const void* from, void* token, std::size_t offset, std::size_t bytes) {
  return move_all("pwrite", bytes, [&](std::size_t done) {
    return pwrite(descriptor_, static_cast<const char*>(from) + done, bytes - done,
                  static_cast<off_t>(offset_of(token) + offset + done));
  });
}

std::string SpillFile::read(void* into, const void* token, std::size_t offset, std::size_t bytes) {
  return move_all("pread", bytes, [&](std::size_t done) {
    return pread(descriptor_, static_cast<char*>(into) + done, bytes - done,
                 static_cast<off_t>(offset_of(token) + offset + done));
  });
}

std::size_t SpillFile::free_bytes() const {
  struct statvfs status {};
  if (fstatvfs(descriptor_, &status) != 0) return 0;
  return static_cast<std::size_t>(status.f_bavail) * static_cast<std::size_t>(status.f_frsize);
}

}  // namespace weft
