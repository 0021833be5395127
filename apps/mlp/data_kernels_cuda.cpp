#include "actors/cuda/kernels/elementwise.hpp"
#include "actors/cuda/kernels/learning.hpp"
#include "apps/mlp/data_kernels.hpp"
#include "apps/mlp/layer_variants.hpp"

namespace weft::mlp {
namespace {

void run_normalise(Cuda& gpu, std::uint64_t first, float scale, In<float> offsets,
                   In<std::uint8_t> records, Out<float> x, Out<std::uint8_t> y) {
  const auto pitch = static_cast<std::size_t>(records.dim(1));
  const std::uint8_t* const begin = records.data() + first * pitch;
  const cuda::ByteRows from{begin, pitch, begin + offsets.size(), pitch, nullptr};
  cuda::normalise(gpu.stream(), x.data(), y.data(), y.size(), offsets.size(),
                  static_cast<std::size_t>(x.dim(1)), from, scale, offsets.data());
}

void run_load(Cuda& gpu, std::uint64_t first, float scale, In<float> offsets,
              In<std::uint8_t> images, In<std::uint8_t> labels, In<std::uint32_t> order,
              Out<float> x, Out<std::uint8_t> y) {
  const cuda::ByteRows from{images.data(), offsets.size(), labels.data(), 1, order.data() + first};
  cuda::normalise(gpu.stream(), x.data(), y.data(), y.size(), offsets.size(),
                  static_cast<std::size_t>(x.dim(1)), from, scale, offsets.data());
}

void run_take(Cuda& gpu, std::uint64_t first, In<std::uint32_t> order, Out<std::uint32_t> part) {
  cuda::copy(gpu.stream(), part.data(), order.data() + first, part.size() * sizeof(std::uint32_t));
}

}  // namespace

void add_data_variants() {
  kernels::take().cuda(run_take);
  kernels::normalise().cuda(run_normalise);
  kernels::load().cuda(run_load);
}

}  // namespace weft::mlp
