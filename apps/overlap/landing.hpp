#pragma once

#include <span>
#include <vector>
#include <weft/weft.hpp>

#include "apps/overlap/reference.hpp"

namespace weft::apps {

/// Where results come to on the host: weft's own host memory, or memory of the program that it
/// allocated and touched before.
template <class T>
class Landing {
 public:
  /// For `count` results like `reference`'s matrix.
  Landing(const Reference<T>& reference, int count, bool to_program) : reference_(reference) {
    const auto elements = static_cast<std::size_t>(reference.tensor().size());
    if (to_program) memory_.assign(static_cast<std::size_t>(count), std::vector<T>(elements));
  }

  /// Forgets what came, so that nothing of it is taken for what comes next.
  void clear() {
    arrays_.clear();
    copied_.clear();
    for (auto& result : memory_) reference_.spoil(result);
  }

  /// Starts to copy one more result.
  void take(const Tensor<T>& result) {
    if (memory_.empty()) {
      arrays_.push_back(result.to_host());
      copied_.push_back(arrays_.back().future());
    } else {
      copied_.push_back(result.copy_to(memory_[copied_.size()]));
    }
  }

  /// Waits until all are here.
  void wait() const { when_all(std::span<const Future>(copied_)).wait(); }

  /// Checks each; throws `std::runtime_error`.
  void check() const {
    for (std::size_t i = 0; i < copied_.size(); ++i)
      reference_.check(memory_.empty() ? arrays_[i].span() : std::span<const T>(memory_[i]));
  }

 private:
  const Reference<T>& reference_;
  std::vector<std::vector<T>> memory_;  // empty: weft's own
  std::vector<HostArray<T>> arrays_;
  std::vector<Future> copied_;
};

}  // namespace weft::apps
