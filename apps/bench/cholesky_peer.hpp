#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/runtime.hpp"

namespace weft::bench {

/// A library's own Cholesky factorisation of the same matrix.
struct CholeskyPeer {
  std::string name;             ///< `cuSOLVER potrf on gpu0`
  std::vector<double> seconds;  ///< of each run; empty: it was not run
  std::string left_out;         ///< why not
};

/// On the first CUDA device of a runtime of `options`, without their budgets of memory: cuSOLVER's
/// potrf, of the half of the matrix that it is faster with. Where there is none: OpenBLAS's on all
/// cores that this process may use. `T` is float or double.
template <class T>
CholeskyPeer measure_peer(RuntimeOptions options, std::int64_t n, std::uint32_t repeats);

}  // namespace weft::bench
