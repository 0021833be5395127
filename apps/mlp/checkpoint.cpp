#include "apps/mlp/checkpoint.hpp"

#include <zlib.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace weft::mlp {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "numbers are written as they are");

constexpr std::string_view kMagic = "weft-mlp";
constexpr std::uint32_t kVersion = 1;

std::uint32_t checksum(const std::string& bytes, std::size_t count) {
  return static_cast<std::uint32_t>(crc32(crc32(0, nullptr, 0),
                                          reinterpret_cast<const Bytef*>(bytes.data()),
                                          static_cast<uInt>(count)));
}

void put_u32(std::string& to, std::uint32_t value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& to, const std::vector<float>& values) {
  to.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

std::string header_of(const Checkpoint& checkpoint) {
  const Hyper& hyper = checkpoint.hyper;
  const json header = {{"inputs", hyper.inputs},
                       {"hidden", hyper.hidden},
                       {"classes", hyper.classes},
                       {"batch", hyper.batch},
                       {"lr", hyper.rate},
                       {"momentum", hyper.momentum},
                       {"seed", hyper.seed},
                       {"epoch", checkpoint.epoch},
                       {"samples", checkpoint.samples},
                       {"labels_crc32", checkpoint.fingerprint},
                       {"devices", checkpoint.devices},
                       {"shares", checkpoint.shares}};
  return header.dump();
}

/// Takes the parts of a file one after the other.
class Parts {
 public:
  Parts(const fs::path& file, std::string bytes) : file_(file), bytes_(std::move(bytes)) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw CheckpointError(file_.string() + ": " + what +
                          "; give a file that weft mlp --save has written");
  }
  std::string take(std::size_t count) {
    if (count > bytes_.size() - at_) refuse("ends early, it is damaged");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  std::uint32_t take_u32() {
    std::uint32_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::vector<float> take_floats(const Shape& shape) {
    std::vector<float> values(static_cast<std::size_t>(shape.size()));
    const std::string part = take(values.size() * sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), part.data(), part.size());
    return values;
  }
  void check_sum() {
    if (bytes_.size() < sizeof(std::uint32_t)) refuse("ends early, it is damaged");
    const std::size_t before = bytes_.size() - sizeof(std::uint32_t);
    std::uint32_t written = 0;
    std::memcpy(&written, bytes_.data() + before, sizeof written);
    if (checksum(bytes_, before) != written) refuse("is damaged, its checksum does not fit");
  }
  [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }

 private:
  const fs::path& file_;
  std::string bytes_;
  std::size_t at_ = 0;
};

void read_header(const Parts& parts, const std::string& text, Checkpoint& checkpoint) {
  try {
    const json header = json::parse(text);
    Hyper& hyper = checkpoint.hyper;
    header.at("inputs").get_to(hyper.inputs);
    header.at("hidden").get_to(hyper.hidden);
    header.at("classes").get_to(hyper.classes);
    header.at("batch").get_to(hyper.batch);
    header.at("lr").get_to(hyper.rate);
    header.at("momentum").get_to(hyper.momentum);
    header.at("seed").get_to(hyper.seed);
    header.at("epoch").get_to(checkpoint.epoch);
    header.at("samples").get_to(checkpoint.samples);
    header.at("labels_crc32").get_to(checkpoint.fingerprint);
    header.at("devices").get_to(checkpoint.devices);
    header.at("shares").get_to(checkpoint.shares);
  } catch (const json::exception& error) {
    parts.refuse(std::string("has a header that cannot be read (") + error.what() + ")");
  }
  constexpr std::size_t kMost = std::size_t{1} << 24;
  const Hyper& hyper = checkpoint.hyper;
  if (hyper.inputs == 0 || hyper.hidden == 0 || hyper.classes == 0 || hyper.batch == 0 ||
      hyper.inputs > kMost || hyper.hidden > kMost || hyper.classes > kMost ||
      !(hyper.momentum >= 0) || !std::isfinite(hyper.rate) ||
      checkpoint.devices.size() != checkpoint.shares.size())
    parts.refuse("has a header whose numbers cannot be true");
}

}  // namespace

void write_checkpoint(const fs::path& file, const Checkpoint& checkpoint) {
  std::string bytes(kMagic);
  const std::string header = header_of(checkpoint);
  put_u32(bytes, kVersion);
  put_u32(bytes, static_cast<std::uint32_t>(header.size()));
  bytes += header;
  const Parameters& parameters = checkpoint.parameters;
  for (const auto* values : {&parameters.w1, &parameters.w2, &parameters.v1, &parameters.v2})
    put(bytes, *values);
  put_u32(bytes, checksum(bytes, bytes.size()));
  const fs::path part = file.string() + ".part";
  errno = 0;
  {
    std::ofstream to(part, std::ios::binary | std::ios::trunc);
    to.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    to.close();
    if (!to)
      throw CheckpointError(part.string() + ": cannot be written (" + std::strerror(errno) + ")");
  }
  std::error_code error;
  fs::rename(part, file, error);
  if (error) throw CheckpointError(file.string() + ": cannot be written (" + error.message() + ")");
}

Checkpoint read_checkpoint(const fs::path& file) {
  errno = 0;
  std::ifstream from(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(from)), std::istreambuf_iterator<char>());
  if (!from)
    throw CheckpointError(file.string() + ": cannot be read (" +
                          (errno ? std::strerror(errno) : "unknown error") +
                          "); give a file that weft mlp --save has written");
  Parts parts(file, std::move(bytes));
  if (parts.left() < kMagic.size() || parts.take(kMagic.size()) != kMagic)
    parts.refuse("is not a checkpoint of weft mlp");
  const std::uint32_t version = parts.take_u32();
  if (version != kVersion)
    parts.refuse("has version " + std::to_string(version) + ", and this weft reads version " +
                 std::to_string(kVersion));
  parts.check_sum();
  Checkpoint checkpoint;
  read_header(parts, parts.take(parts.take_u32()), checkpoint);
  checkpoint.parameters.w1 = parts.take_floats(shape_1(checkpoint.hyper));
  checkpoint.parameters.w2 = parts.take_floats(shape_2(checkpoint.hyper));
  checkpoint.parameters.v1 = parts.take_floats(velocity_shape_1(checkpoint.hyper));
  checkpoint.parameters.v2 = parts.take_floats(velocity_shape_2(checkpoint.hyper));
  if (parts.left() != sizeof(std::uint32_t)) parts.refuse("has more in it than its header says");
  return checkpoint;
}

}  // namespace weft::mlp
