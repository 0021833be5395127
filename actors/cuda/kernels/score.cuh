#pragma once

namespace weft::cuda {

/// Loss of a row as a multiple of 2^-26: sums of such numbers below 2^27 are exact in a double, so
/// any order of adding gives the same bits.
__device__ inline double exact_loss(float loss) {
  return rint(static_cast<double>(loss) * 67'108'864.0) * (1.0 / 67'108'864.0);
}

}  // namespace weft::cuda
