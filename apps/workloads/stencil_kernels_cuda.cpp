#include "actors/cuda/kernels/elementwise.hpp"
#include "apps/workloads/cuda_variants.hpp"
#include "apps/workloads/fill_tiles.hpp"
#include "apps/workloads/relax.hpp"
#include "apps/workloads/stencil_kernels.hpp"

namespace weft::workloads {
namespace {

void run_fill_strip(Cuda& gpu, std::int64_t first_row, Out<float> strip) {
  const std::int64_t width = strip.dim(1);
  device::random_tile(gpu.stream(), strip.data(), {width, first_row, 0, strip.dim(0), width},
                      kStencilSeed);
}

void run_edges(Cuda& gpu, In<float> strip, Out<float> top, Out<float> bottom) {
  cuda::copy(gpu.stream(), top.data(), strip.data(), top.size() * sizeof(float));
  cuda::copy(gpu.stream(), bottom.data(), strip.data() + strip.size() - bottom.size(),
             bottom.size() * sizeof(float));
}

void run_relax(Cuda& gpu, In<float> from, In<float> above, In<float> below, Out<float> to) {
  device::relax(gpu.stream(), {from.data(), above.data(), below.data(), to.data(), from.dim(0),
                               from.dim(1), kStencilCentre, kStencilSide});
}

}  // namespace

void add_stencil_variants() {
  fill_strip().cuda(run_fill_strip);
  edges().cuda(run_edges);
  relax().cuda(run_relax);
}

}  // namespace weft::workloads
