#include <algorithm>
#include <cstdint>

#include "actors/cuda/blas.hpp"
#include "actors/cuda/kernels/elementwise.hpp"
#include "actors/cuda/kernels/learning.hpp"
#include "apps/mlp/head.hpp"
#include "apps/mlp/layer_kernels.hpp"
#include "apps/mlp/layer_variants.hpp"
#include "apps/mlp/small.hpp"
#include "apps/mlp/thin.hpp"

namespace weft::mlp {
namespace {

using cuda::Gemm;
using cuda::Workspace;

std::size_t count_of(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

template <class... Pointer>
bool are_aligned(const Pointer*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

// h = relu(x·w1) for `rows` rows.
void first_layer(Cuda& gpu, const float* x, std::int64_t rows, In<float> w1, float* h,
                 std::int64_t width, const Workspace* workspace) {
  const device::SmallForward small{x,
                                   w1.data(),
                                   h,
                                   count_of(rows),
                                   static_cast<int>(w1.dim(0)),
                                   static_cast<int>(w1.dim(1)),
                                   static_cast<int>(width)};
  if (gpu.precision() == Precision::Fp32 && are_aligned(x, w1.data(), h) &&
      device::has_small_forward(small.rows, small.inputs, small.hidden, small.width)) {
    device::small_forward(gpu.stream(), gpu.device(), small);
    return;
  }
  Gemm<float> product;
  product.m = rows;
  product.k = w1.dim(0);
  product.n = w1.dim(1);
  product.a = x;
  product.lda = product.k;
  product.b = w1.data();
  product.ldb = product.n;
  product.c = h;
  product.ldc = width;
  product.epilogue = cuda::Epilogue::Relu;
  if (workspace)
    gemm(gpu, product, *workspace);
  else
    gemm(gpu, product);
}

// The second layer by products, for extents that `run_head` has no kernel for. z [rows, classes].
void second_layer(Cuda& gpu, const device::Head& head, float* z, const Workspace* workspace) {
  const auto run = [&](const Gemm<float>& product) {
    if (workspace)
      gemm(gpu, product, *workspace);
    else
      gemm(gpu, product);
  };
  device::fill_ones(gpu.stream(), head.h, head.rows, head.hidden, head.width);
  Gemm<float> forward;
  forward.m = static_cast<std::int64_t>(head.rows);
  forward.k = head.width;
  forward.n = head.classes;
  forward.a = head.h;
  forward.lda = head.width;
  forward.b = head.w2;
  forward.ldb = head.classes;
  forward.c = z;
  forward.ldc = head.classes;
  run(forward);
  cuda::softmax_cross_entropy(gpu.stream(), z, head.rows, count_of(head.classes), head.labels,
                              head.dz ? head.scale : 0.0f, head.score);
  if (!head.dz) return;
  Gemm<float> back;
  back.transpose_b = true;
  back.m = forward.m;
  back.k = head.classes;
  back.n = head.hidden;
  back.a = z;
  back.lda = head.classes;
  back.b = head.w2;
  back.ldb = head.classes;
  back.c = head.dh;
  back.ldc = head.hidden;
  run(back);
  device::mask(gpu.stream(), head.dh, head.h, head.rows, head.hidden, head.width);
}

device::Head head_of(In<float> w1, In<float> w2, double* score) {
  device::Head head;
  head.hidden = static_cast<int>(w1.dim(1));
  head.width = static_cast<int>(w2.dim(0));
  head.classes = static_cast<int>(w2.dim(1));
  head.w2 = w2.data();
  head.score = score;
  return head;
}

void run_forward(Cuda& gpu, std::uint64_t batch, In<float> x, In<std::uint8_t> y, In<float> w1,
                 In<float> w2, Out<float> h, Out<float> dz, Out<float> dh, InOut<double> score) {
  if (y.size() == 0) return;
  first_layer(gpu, x.data(), x.dim(0), w1, h.data(), w2.dim(0), nullptr);
  device::Head head = head_of(w1, w2, score.data());
  head.h = h.data();
  head.rows = y.size();
  head.labels = y.data();
  head.scale = 1.0f / static_cast<float>(batch);
  head.dz = dz.data();
  head.dh = dh.data();
  if (device::has_head(head.hidden, head.classes))
    device::run_head(gpu.stream(), head);
  else
    second_layer(gpu, head, head.dz, nullptr);
}

void run_evaluate(Cuda& gpu, In<float> x, In<std::uint8_t> y, In<float> w1, In<float> w2,
                  InOut<double> score) {
  if (y.size() == 0) return;
  // As many rows together as fill the GPU and keep h in its cache.
  constexpr std::size_t kHiddenBytes = std::size_t{32} << 20;
  const std::size_t width = count_of(w2.dim(0)), classes = count_of(w2.dim(1));
  const std::size_t together =
      std::min(y.size(), std::max<std::size_t>(kHiddenBytes / (width * sizeof(float)), 256));
  const auto aligned = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
  const std::size_t h_bytes = aligned(together * width * sizeof(float));
  const std::size_t z_bytes = aligned(together * classes * sizeof(float));
  auto* memory = static_cast<char*>(gpu.scratch(cuda::kWorkspaceBytes + h_bytes + z_bytes));
  const Workspace workspace{memory, cuda::kWorkspaceBytes};
  device::Head head = head_of(w1, w2, score.data());
  head.h = reinterpret_cast<float*>(memory + cuda::kWorkspaceBytes);
  auto* z = reinterpret_cast<float*>(memory + cuda::kWorkspaceBytes + h_bytes);
  for (std::size_t first = 0; first < y.size(); first += together) {
    head.rows = std::min(together, y.size() - first);
    head.labels = y.data() + first;
    first_layer(gpu, x.data() + first * count_of(x.dim(1)), static_cast<std::int64_t>(head.rows),
                w1, head.h, w2.dim(0), &workspace);
    if (device::has_head(head.hidden, head.classes))
      device::run_head(gpu.stream(), head);
    else
      second_layer(gpu, head, z, &workspace);
  }
}

bool is_thin(In<float> d) {
  return d.dim(1) <= device::kThinColumns;
}

device::ThinProduct thin_of(In<float> a, In<float> d) {
  device::ThinProduct product;
  product.a = a.data();
  product.d = d.data();
  product.rows = count_of(d.dim(0));
  product.width = static_cast<int>(a.dim(1));
  product.columns = static_cast<int>(d.dim(1));
  return product;
}

// c = alpha·(rows `first` … of aᵀ·d, `height` of them) + beta·c
void wide_product(Cuda& gpu, std::int64_t first, std::int64_t height, float alpha, In<float> a,
                  In<float> d, float beta, float* c) {
  Gemm<float> product;
  product.transpose_a = true;
  product.m = height;
  product.k = d.dim(0);
  product.n = d.dim(1);
  product.alpha = alpha;
  product.a = a.data() + first;
  product.lda = a.dim(1);
  product.b = d.data();
  product.ldb = product.n;
  product.beta = beta;
  product.c = c;
  product.ldc = product.n;
  gemm(gpu, product);
}

// Whether columns of a from `from` on, `height` of them, make a product with d that
// `small_gradient` is for; `outputs` are what it would write.
template <class... Output>
bool is_small(Cuda& gpu, const float* from, In<float> a, In<float> d, std::int64_t height,
              const Output*... outputs) {
  return gpu.precision() == Precision::Fp32 && are_aligned(from, d.data(), outputs...) &&
         device::has_small_gradient(count_of(d.dim(0)), static_cast<int>(height),
                                    static_cast<int>(a.dim(1)), static_cast<int>(d.dim(1)));
}

device::SmallGradient small_of(const float* from, In<float> a, In<float> d, std::int64_t height) {
  device::SmallGradient small;
  small.x = from;
  small.dh = d.data();
  small.rows = count_of(d.dim(0));
  small.inputs = static_cast<int>(height);
  small.pitch = static_cast<int>(a.dim(1));
  small.hidden = static_cast<int>(d.dim(1));
  return small;
}

// g = rows `first` … of aᵀ·d, `height` of them
void part_of_gradient(Cuda& gpu, std::int64_t first, std::int64_t height, In<float> a, In<float> d,
                      float* g) {
  if (is_thin(d)) {
    device::ThinProduct product = thin_of(a, d);
    product.first = static_cast<int>(first);
    product.height = static_cast<int>(height);
    product.g = g;
    device::thin_product(gpu.stream(), product);
  } else if (is_small(gpu, a.data() + first, a, d, height, g)) {
    device::SmallGradient small = small_of(a.data() + first, a, d, height);
    small.g = g;
    device::small_gradient(gpu.stream(), gpu.device(), small);
  } else {
    wide_product(gpu, first, height, 1, a, d, 0, g);
  }
}

void run_gradient(Cuda& gpu, std::int64_t first, In<float> a, In<float> d, Out<float> g) {
  part_of_gradient(gpu, first, g.dim(0), a, d, g.data());
}

void run_gradients(Cuda& gpu, In<float> x, In<float> dh, In<float> h, In<float> dz, Out<float> g) {
  part_of_gradient(gpu, 0, h.dim(1), h, dz, g.data() + x.dim(1) * dh.dim(1));
  part_of_gradient(gpu, 0, x.dim(1), x, dh, g.data());
}

void run_descend(Cuda& gpu, float rate, float momentum, In<float> a, In<float> d, InOut<float> w,
                 InOut<float> v) {
  const bool has_momentum = v.size() > 0;
  if (is_thin(d)) {
    device::ThinProduct product = thin_of(a, d);
    product.height = static_cast<int>(w.dim(0));
    product.w = w.data();
    product.v = has_momentum ? v.data() : nullptr;
    product.rate = rate;
    product.momentum = momentum;
    device::thin_product(gpu.stream(), product);
  } else if (is_small(gpu, a.data(), a, d, w.dim(0), w.data(), v.data())) {
    device::SmallGradient small = small_of(a.data(), a, d, w.dim(0));
    small.w = w.data();
    small.v = has_momentum ? v.data() : nullptr;
    small.rate = rate;
    small.momentum = momentum;
    device::small_gradient(gpu.stream(), gpu.device(), small);
  } else if (has_momentum) {
    wide_product(gpu, 0, w.dim(0), 1, a, d, momentum, v.data());
    cuda::sgd(gpu.stream(), w.data(), v.data(), w.size(), rate);  // w -= rate·v
  } else if (d.dim(0) > 0) {
    wide_product(gpu, 0, w.dim(0), -rate, a, d, 1, w.data());
  }
}

void run_update(Cuda& gpu, float rate, float momentum, std::int64_t first, In<float> g,
                InOut<float> w, InOut<float> v) {
  const std::size_t from = count_of(first * w.dim(1));
  if (v.size() == 0)
    cuda::sgd(gpu.stream(), w.data() + from, g.data(), g.size(), rate);
  else
    cuda::sgd(gpu.stream(), w.data() + from, v.data() + from, g.data(), g.size(), rate, momentum);
}

void run_update_all(Cuda& gpu, float rate, float momentum, In<float> g, InOut<float> w1,
                    InOut<float> v1, InOut<float> w2, InOut<float> v2) {
  cuda::sgd_of_two(gpu.stream(), {w1.data(), v1.size() ? v1.data() : nullptr, w1.size()},
                   {w2.data(), v2.size() ? v2.data() : nullptr, w2.size()}, g.data(), rate,
                   momentum);
}

}  // namespace

void add_layer_variants() {
  kernels::initialise().cuda([](Cuda& gpu, std::uint64_t seed, float limit, std::int64_t rows,
                                Out<float> w) {
    device::initialise(gpu.stream(), w.data(), w.size(), count_of(rows * w.dim(1)), seed, limit);
  });
  kernels::copy().cuda([](Cuda& gpu, In<float> from, Out<float> to) {
    cuda::copy(gpu.stream(), to.data(), from.data(), from.size() * sizeof(float));
  });
  kernels::zero().cuda(
      [](Cuda& gpu, Out<float> x) { gpu.clear(x.data(), x.size() * sizeof(float)); });
  kernels::no_score().cuda(
      [](Cuda& gpu, Out<double> score) { gpu.clear(score.data(), score.size() * sizeof(double)); });
  kernels::forward().cuda(run_forward);
  kernels::gradient().cuda(run_gradient);
  kernels::gradients().cuda(run_gradients);
  kernels::update().cuda(run_update);
  kernels::update_all().cuda(run_update_all);
  kernels::descend().cuda(run_descend);
  kernels::evaluate().cuda(run_evaluate);
}

}  // namespace weft::mlp
