// The reader of IDX files, and what it says about damaged ones.
#include "apps/mlp/dataset.hpp"
#include "apps/mlp_tiny_data.hpp"
#include "support/catch.hpp"

namespace weft::mlp {
namespace {

std::string refusal(const std::filesystem::path& folder) {
  try {
    read_dataset(folder);
  } catch (const DataError& error) {
    return error.what();
  }
  return "read";
}

bool says(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (text.find(part) == std::string::npos) return false;
  return text.find('\n') == std::string::npos;
}

TEST_CASE("a data set is read from plain and compressed files alike", "[apps]") {
  const TemporaryFolder folder("data");
  write_tiny_data(folder.path(), 30, 20);
  const Dataset data = read_dataset(folder.path());
  CHECK(data.inputs == 64);
  CHECK(data.classes == 4);
  CHECK(data.train.count == 30);
  CHECK(data.test.count == 20);
  REQUIRE(data.train.images.size() == 30 * 64);
  REQUIRE(data.test.labels.size() == 20);

  const auto images = folder.path() / "train-images-idx3-ubyte";
  write_gz(images.string() + ".gz", read_file(images));
  std::filesystem::remove(images);
  CHECK(read_dataset(folder.path()).train.images == data.train.images);
}

TEST_CASE("a missing file or folder is named with what to do", "[apps]") {
  const TemporaryFolder folder("data");
  CHECK(says(refusal(folder.path() / "nowhere"),
             {"nowhere", "no such folder", "dataset-fashion-mnist", "--dataset"}));
  write_tiny_data(folder.path(), 30, 20);
  std::filesystem::remove(folder.path() / "t10k-images-idx3-ubyte");
  CHECK(says(refusal(folder.path()),
             {"t10k-images-idx3-ubyte", "not there", "dataset-fashion-mnist", "--dataset"}));
}

TEST_CASE("every kind of damage is named", "[apps]") {
  const TemporaryFolder folder("data");
  write_tiny_data(folder.path(), 30, 20);
  const auto images = folder.path() / "train-images-idx3-ubyte";
  const auto labels = folder.path() / "train-labels-idx1-ubyte.gz";
  const std::string good = read_file(images), good_labels = read_file(labels);

  for (const auto& [bytes, what] : std::vector<std::pair<std::string, std::string>>{
           {"", "ends inside the header"},
           {good.substr(0, 3), "ends inside the header"},
           {good.substr(0, 9), "ends inside the header"},
           {good.substr(0, 16), "ends after 0 of the 1920 elements"},
           {good.substr(0, good.size() - 1), "ends after 1919 of the 1920 elements"},
           {good + "x", "goes on after the 1920 elements"},
           {"PNG!" + good.substr(4), "begins with 504e4721 instead of 00000803"},
           {idx_bytes({30}, std::vector<std::uint8_t>(30)), "begins with 00000801"},
           {idx_bytes({0, 8, 8}, {}), "holds nothing"},
           {idx_bytes({0xffffffff, 0xffffffff, 0xffffffff}, {}), "cannot be true"},
           {idx_bytes({0x7fffffff, 2, 2}, {}), "ends after 0 of"}}) {
    INFO(what);
    write_file(images, bytes);
    CHECK(says(refusal(folder.path()), {images.string(), what, "fetch the file again"}));
  }
  write_file(images, good);

  write_file(labels, good_labels.substr(0, good_labels.size() - 9));
  CHECK(says(refusal(folder.path()), {labels.string()}));
  std::string flipped = good_labels;
  flipped[flipped.size() - 8] = static_cast<char>(flipped[flipped.size() - 8] ^ 1);  // its CRC
  write_file(labels, flipped);
  CHECK(says(refusal(folder.path()), {labels.string(), "is damaged"}));
}

TEST_CASE("files of different data sets do not fit together", "[apps]") {
  const TemporaryFolder folder("data");
  write_tiny_data(folder.path(), 30, 20);
  const auto labels = folder.path() / "t10k-labels-idx1-ubyte.gz";
  write_gz(labels, idx_bytes({19}, std::vector<std::uint8_t>(19)));
  CHECK(says(refusal(folder.path()), {labels.string(), "19 labels for the 20 pictures"}));
  write_gz(labels, idx_bytes({20}, std::vector<std::uint8_t>(20, 9)));
  CHECK(says(refusal(folder.path()), {labels.string(), "the label 9"}));
  write_tiny_data(folder.path(), 30, 20);
  const auto images = folder.path() / "t10k-images-idx3-ubyte";
  write_file(images, idx_bytes({20, 8, 9}, std::vector<std::uint8_t>(20 * 72)));
  CHECK(says(refusal(folder.path()), {images.string(), "another size"}));
}

}  // namespace
}  // namespace weft::mlp
