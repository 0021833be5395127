#pragma once

#include <cstdint>

struct CUstream_st;

/// No C++20 here: the `.cu` file includes it.
namespace weft::workloads::device {

/// What a step of the stencil reads and writes, all on the device: strips of [rows, columns].
struct RelaxStep {
  const float *from, *above, *below;
  float* to;
  std::int64_t rows, columns;
  float centre, side;
};

/// `workloads::relax`. Enqueues on `stream` and returns. Throws `DeviceError` if the launch is
/// refused.
void relax(CUstream_st* stream, const RelaxStep& step);

}  // namespace weft::workloads::device
