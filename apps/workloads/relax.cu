#include "apps/workloads/relax.hpp"

#include <cuda_runtime.h>

#include "actors/cuda/check.hpp"

namespace weft::workloads::device {
namespace {

constexpr unsigned kWide = 128, kHigh = 8;  // elements of a block, a column of them a thread

// A thread goes down a column and keeps what it has read of it; neighbours in the row are in the
// cache. Grids higher than blocks reach are gone through in turn.
__global__ void __launch_bounds__(kWide) relax_kernel(RelaxStep step) {
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * kWide + threadIdx.x;
  if (j >= step.columns) return;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.y) * kHigh;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * kHigh; first < step.rows;
       first += stride) {
    const std::int64_t end = first + kHigh < step.rows ? first + kHigh : step.rows;
    const float* row = step.from + first * step.columns;
    float up = first > 0 ? row[j - step.columns] : step.above[j];
    float here = row[j];
    for (std::int64_t i = first; i < end; ++i, row += step.columns) {
      const float down = i + 1 < step.rows ? row[j + step.columns] : step.below[j];
      const float left = j > 0 ? row[j - 1] : 0.0f;
      const float right = j + 1 < step.columns ? row[j + 1] : 0.0f;
      step.to[i * step.columns + j] = step.centre * here + step.side * (up + down + left + right);
      up = here;
      here = down;
    }
  }
}

}  // namespace

void relax(CUstream_st* stream, const RelaxStep& step) {
  constexpr std::int64_t kMostHigh = 65535;
  if (step.rows == 0 || step.columns == 0) return;
  const std::int64_t high = (step.rows + kHigh - 1) / kHigh;
  const dim3 blocks(static_cast<unsigned>((step.columns + kWide - 1) / kWide),
                    static_cast<unsigned>(high < kMostHigh ? high : kMostHigh));
  relax_kernel<<<blocks, kWide, 0, stream>>>(step);
  WEFT_CHECK_LAUNCH("relax");
}

}  // namespace weft::workloads::device
