#pragma once

#include <optional>
#include <string>

#include "apps/mlp/shares.hpp"

namespace weft::mlp {

/// Shares measured before for the same work on the same machine, so that a second run divides its
/// batches alike and gives the same numbers. Kept in `weft/mlp-shares.json` in the user's cache
/// folder; without one, nothing is remembered.
class RememberedShares {
 public:
  /// `work` names what the shares depend on: machine, devices, engines, model.
  explicit RememberedShares(std::string work);

  /// Nothing if none are known for this work or the file cannot be read.
  [[nodiscard]] std::optional<Shares> recall(std::size_t devices) const;
  /// Keeps `shares`. A file that cannot be written is left alone: the next run measures again.
  void remember(const Shares& shares) const;
  /// The file, for people.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string work_, path_;
};

}  // namespace weft::mlp
