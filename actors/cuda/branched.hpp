#pragma once

#include <cstdint>

#include "framework/cuda.hpp"

namespace weft::cuda {

/// What an op sees of a lane whose work becomes a graph with parallel branches: for each branch the
/// lane as it is, but with library handles and scratch memory of the branch's own, so that what
/// runs beside each other does not work in the same memory.
class BranchedCuda : public Cuda {
 public:
  /// Branch 0 is the lane itself. The same number gives the same again. Throws `DeviceError`.
  [[nodiscard]] virtual Cuda& branch(std::uint32_t number) = 0;

 protected:
  ~BranchedCuda() = default;
};

}  // namespace weft::cuda
