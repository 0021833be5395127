#include "actors/cuda/kernels/matrix.hpp"

#include "actors/cuda/kernels/launch.cuh"

namespace weft::cuda {
namespace {

template <class T>
__global__ void scale_rows_kernel(T* c, std::size_t elements, std::int64_t n, std::int64_t ldc,
                                  T beta, const T* bias, bool relu) {
  for (std::size_t i = first_item(); i < elements; i += item_stride()) {
    const auto row = static_cast<std::int64_t>(i) / n, column = static_cast<std::int64_t>(i) % n;
    T& element = c[row * ldc + column];
    T value = beta == 0 ? T{0} : beta * element;
    if (bias) value += bias[column];
    element = relu && !(value > 0) ? T{0} : value;
  }
}

template <class T>
void launch(cudaStream_t stream, T* c, std::int64_t m, std::int64_t n, std::int64_t ldc, T beta,
            const T* bias, bool relu) {
  const auto elements = static_cast<std::size_t>(m * n);
  if (elements == 0) return;
  scale_rows_kernel<<<blocks_for(elements), kBlock, 0, stream>>>(c, elements, n, ldc, beta, bias,
                                                                 relu);
  WEFT_CHECK_LAUNCH("scale_rows");
}

}  // namespace

void scale_rows(CUstream_st* stream, float* c, std::int64_t m, std::int64_t n, std::int64_t ldc,
                float beta, const float* bias, bool relu) {
  launch(stream, c, m, n, ldc, beta, bias, relu);
}
void scale_rows(CUstream_st* stream, double* c, std::int64_t m, std::int64_t n, std::int64_t ldc,
                double beta, const double* bias, bool relu) {
  launch(stream, c, m, n, ldc, beta, bias, relu);
}

}  // namespace weft::cuda
