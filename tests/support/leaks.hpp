#pragma once

#include "framework/memory_pool.hpp"
#include "framework/op_pool.hpp"
#include "framework/tensor_state.hpp"
#include "support/catch.hpp"

namespace weft::test {

/// Counters of what exists in the process: taken at the start, compared at the end.
class Leaks {
 public:
  Leaks() : ops_(op_pool::live()), tensors_(live_tensors()) {}
  /// Fails the test if anything made since is still there.
  void check() const {
    CHECK(op_pool::live() == ops_);
    CHECK(live_tensors() == tensors_);
  }
  [[nodiscard]] bool any() const { return op_pool::live() != ops_ || live_tensors() != tensors_; }

 private:
  std::int64_t ops_, tensors_;
};

}  // namespace weft::test
