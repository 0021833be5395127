#include "apps/mlp/remembered_shares.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "topology/measurements.hpp"

namespace weft::mlp {
namespace {

nlohmann::json read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return nlohmann::json::object();
  auto known = nlohmann::json::parse(file, nullptr, false);
  return known.is_object() ? known : nlohmann::json::object();
}

}  // namespace

RememberedShares::RememberedShares(std::string work) : work_(std::move(work)) {
  const std::string beside = measurements_path("x");
  if (!beside.empty())
    path_ = (std::filesystem::path(beside).parent_path() / "mlp-shares.json").string();
}

std::optional<Shares> RememberedShares::recall(std::size_t devices) const {
  const nlohmann::json known = read(path_);
  const auto found = known.find(work_);
  if (found == known.end() || !found->is_string()) return std::nullopt;
  try {
    return parse_shares(found->get<std::string>(), devices);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

void RememberedShares::remember(const Shares& shares) const {
  if (path_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  nlohmann::json known = read(path_);
  known[work_] = shares.to_string();
  // Written whole beside it and then put in its place: a reader never sees half a file.
  const std::string fresh = path_ + ".new";
  std::ofstream file(fresh);
  file << known.dump(1) << "\n";
  file.close();
  if (file) std::filesystem::rename(fresh, path_, error);
}

}  // namespace weft::mlp
