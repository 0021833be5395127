#include "apps/mlp/layer_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "apps/mlp/random.hpp"
#include "framework/blas.hpp"

namespace weft::mlp::kernels {
namespace {

// One panel a core: a product packs its operands once per panel, which costs more than what a
// late core would win back.
constexpr std::size_t kPanelStep = 16;
constexpr std::size_t kSmallestPanel = 32;

/// Calls `body(first, last)` for panels of [0, n), several at once.
template <class Body>
void for_panels(Cpu& cpu, std::size_t n, std::size_t largest, const Body& body) {
  const std::size_t most = std::max<std::size_t>(n / kSmallestPanel, 1);
  const std::size_t panels = std::min(cpu.team_size(), most);
  std::size_t step = std::min((n + panels - 1) / panels, largest);
  step = (step + kPanelStep - 1) / kPanelStep * kPanelStep;
  if (step == 0) return;
  cpu.parallel_ranges((n + step - 1) / step, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t panel = begin; panel < end; ++panel)
      body(panel * step, std::min(n, (panel + 1) * step));
  });
}

struct Answer {
  float loss;
  bool right;
};

/// Replaces one row of logits by its softmax.
Answer softmax(float* z, std::size_t classes, std::size_t label) {
  const float largest = *std::max_element(z, z + classes);
  const float wanted = z[label];
  const bool right = std::max_element(z, z + classes) == z + label;
  float sum = 0;
  for (std::size_t c = 0; c < classes; ++c) sum += z[c] = std::exp(z[c] - largest);
  const float scale = 1 / sum;
  for (std::size_t c = 0; c < classes; ++c) z[c] *= scale;
  return {std::log(sum) + largest - wanted, right};
}

/// h = relu(x·w1) with a one and zeros behind, z = h·w2, for `rows` rows.
struct Layers {
  std::int64_t inputs, hidden, width, classes;  // lengths of the rows of x, dh, h and z
  const float *w1, *w2;

  void run(Cpu& cpu, std::int64_t rows, const float* x, float* h, float* z) const {
    blas::gemm(cpu, false, false, rows, hidden, inputs, 1.0f, x, inputs, w1, hidden, 0.0f, h,
               width);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* row = h + r * width;
      for (std::int64_t i = 0; i < hidden; ++i) row[i] = std::max(row[i], 0.0f);
      row[hidden] = 1.0f;
      std::fill(row + hidden + 1, row + width, 0.0f);
    }
    blas::gemm(cpu, false, false, rows, classes, width, 1.0f, h, width, w2, classes, 0.0f, z,
               classes);
  }
};

Layers layers_of(In<float> w1, In<float> w2) {
  return {w1.dim(0), w1.dim(1), w2.dim(0), w2.dim(1), w1.data(), w2.data()};
}

/// In the order of the rows, so that the sum does not depend on how they were shared out.
void add_up(const std::vector<Answer>& answers, InOut<double> score) {
  for (const Answer& answer : answers) {
    score[0] += answer.loss;
    score[1] += answer.right ? 1 : 0;
  }
}

void run_forward(Cpu& cpu, std::uint64_t batch, In<float> x, In<std::uint8_t> y, In<float> w1,
                 In<float> w2, Out<float> h, Out<float> dz, Out<float> dh, InOut<double> score) {
  const Layers layers = layers_of(w1, w2);
  const std::int64_t hidden = layers.hidden, width = layers.width, classes = layers.classes;
  const float scale = 1.0f / static_cast<float>(batch);
  std::vector<Answer> answers(y.size());
  for_panels(cpu, y.size(), y.size(), [&](std::size_t first, std::size_t last) {
    const auto from = static_cast<std::int64_t>(first);
    const auto rows = static_cast<std::int64_t>(last - first);
    float* hs = h.data() + from * width;
    float* zs = dz.data() + from * classes;
    float* ds = dh.data() + from * hidden;
    layers.run(cpu, rows, x.data() + from * layers.inputs, hs, zs);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::size_t row = first + static_cast<std::size_t>(r);
      float* z = zs + r * classes;
      answers[row] = softmax(z, static_cast<std::size_t>(classes), y[row]);
      z[y[row]] -= 1;
      for (std::int64_t c = 0; c < classes; ++c) z[c] *= scale;
    }
    blas::gemm(cpu, false, true, rows, hidden, classes, 1.0f, zs, classes, w2.data(), classes, 0.0f,
               ds, hidden);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < hidden; ++i)
        ds[r * hidden + i] = hs[r * width + i] > 0 ? ds[r * hidden + i] : 0.0f;
  });
  add_up(answers, score);
}

/// c = alpha·(rows first … last of aᵀ·d) + beta·c, where c holds these rows.
void product(Cpu& cpu, std::size_t first, std::size_t last, float alpha, In<float> a, In<float> d,
             float beta, float* c) {
  const std::int64_t n = d.dim(1), lda = a.dim(1);
  const auto m = static_cast<std::int64_t>(last - first);
  if (d.dim(0) == 0) {  // a shard without samples
    for (std::int64_t i = 0; i < m * n; ++i) c[i] = beta == 0 ? 0.0f : beta * c[i];
    return;
  }
  blas::gemm(cpu, true, false, m, n, d.dim(0), alpha, a.data() + first, lda, d.data(), n, beta, c,
             n);
}

// g = rows `first` … of aᵀ·d, `height` of them
void part_of_gradient(Cpu& cpu, std::size_t first, std::size_t height, In<float> a, In<float> d,
                      float* g) {
  const auto width = static_cast<std::size_t>(d.dim(1));
  for_panels(cpu, height, height, [&](std::size_t begin, std::size_t end) {
    product(cpu, first + begin, first + end, 1.0f, a, d, 0.0f, g + begin * width);
  });
}

void run_gradient(Cpu& cpu, std::int64_t first, In<float> a, In<float> d, Out<float> g) {
  part_of_gradient(cpu, static_cast<std::size_t>(first), static_cast<std::size_t>(g.dim(0)), a, d,
                   g.data());
}

void run_gradients(Cpu& cpu, In<float> x, In<float> dh, In<float> h, In<float> dz, Out<float> g) {
  part_of_gradient(cpu, 0, static_cast<std::size_t>(x.dim(1)), x, dh, g.data());
  part_of_gradient(cpu, 0, static_cast<std::size_t>(h.dim(1)), h, dz,
                   g.data() + x.dim(1) * dh.dim(1));
}

void run_descend(Cpu& cpu, float rate, float momentum, In<float> a, In<float> d, InOut<float> w,
                 InOut<float> v) {
  const auto height = static_cast<std::size_t>(w.dim(0)),
             width = static_cast<std::size_t>(w.dim(1));
  for_panels(cpu, height, height, [&](std::size_t first, std::size_t last) {
    if (v.size() == 0) {
      product(cpu, first, last, -rate, a, d, 1.0f, w.data() + first * width);
      return;
    }
    product(cpu, first, last, 1.0f, a, d, momentum, v.data() + first * width);
    for (std::size_t i = first * width; i < last * width; ++i) w[i] -= rate * v[i];
  });
}

// A step of `count` weights; v null: without momentum.
void descend_along(Cpu& cpu, float rate, float momentum, std::size_t count, const float* g,
                   float* w, float* v) {
  constexpr std::size_t kGrain = 32'768;
  cpu.parallel_ranges(count, kGrain, [&](std::size_t begin, std::size_t end) {
    if (!v) {
      for (std::size_t i = begin; i < end; ++i) w[i] -= rate * g[i];
      return;
    }
    for (std::size_t i = begin; i < end; ++i) {
      v[i] = momentum * v[i] + g[i];
      w[i] -= rate * v[i];
    }
  });
}

void run_update(Cpu& cpu, float rate, float momentum, std::int64_t first, In<float> g,
                InOut<float> w, InOut<float> v) {
  const auto from = static_cast<std::size_t>(first * w.dim(1));
  descend_along(cpu, rate, momentum, g.size(), g.data(), w.data() + from,
                v.size() == 0 ? nullptr : v.data() + from);
}

void run_update_all(Cpu& cpu, float rate, float momentum, In<float> g, InOut<float> w1,
                    InOut<float> v1, InOut<float> w2, InOut<float> v2) {
  descend_along(cpu, rate, momentum, w1.size(), g.data(), w1.data(),
                v1.size() == 0 ? nullptr : v1.data());
  descend_along(cpu, rate, momentum, w2.size(), g.data() + w1.size(), w2.data(),
                v2.size() == 0 ? nullptr : v2.data());
}

void run_evaluate(Cpu& cpu, In<float> x, In<std::uint8_t> y, In<float> w1, In<float> w2,
                  InOut<double> score) {
  constexpr std::size_t kRowsTogether = 256;  // what fits into a core's cache beside the weights
  const Layers layers = layers_of(w1, w2);
  const auto classes = static_cast<std::size_t>(layers.classes);
  std::vector<Answer> answers(y.size());
  for_panels(cpu, y.size(), kRowsTogether, [&](std::size_t first, std::size_t last) {
    const std::size_t rows = last - first;
    std::vector<float> h(rows * static_cast<std::size_t>(layers.width)), z(rows * classes);
    layers.run(cpu, static_cast<std::int64_t>(rows),
               x.data() + first * static_cast<std::size_t>(layers.inputs), h.data(), z.data());
    for (std::size_t r = 0; r < rows; ++r)
      answers[first + r] = softmax(z.data() + r * classes, classes, y[first + r]);
  });
  add_up(answers, score);
}

double count(std::int64_t extent) {
  return static_cast<double>(extent);
}

}  // namespace

const Kernel<std::uint64_t, float, std::int64_t, Out<float>>& initialise() {
  static const Kernel<std::uint64_t, float, std::int64_t, Out<float>> kernel =
      Kernel("mlp_initialise")
          .cpu([](Cpu&, std::uint64_t seed, float limit, std::int64_t rows, Out<float> w) {
            const auto weights = static_cast<std::size_t>(rows * w.dim(1));
            for (std::size_t i = 0; i < weights; ++i) w[i] = random_symmetric(seed, i, limit);
            for (std::size_t i = weights; i < w.size(); ++i) w[i] = 0;
          });
  return kernel;
}

const Kernel<In<float>, Out<float>>& copy() {
  static const Kernel<In<float>, Out<float>> kernel =
      Kernel("mlp_copy").cpu([](Cpu&, In<float> from, Out<float> to) {
        std::copy(from.begin(), from.end(), to.begin());
      });
  return kernel;
}

const Kernel<Out<float>>& zero() {
  static const Kernel<Out<float>> kernel =
      Kernel("mlp_zero").cpu([](Cpu&, Out<float> x) { std::fill(x.begin(), x.end(), 0.0f); });
  return kernel;
}

const Kernel<Out<double>>& no_score() {
  static const Kernel<Out<double>> kernel = Kernel("mlp_no_score").cpu([](Cpu&, Out<double> score) {
    std::fill(score.begin(), score.end(), 0.0);
  });
  return kernel;
}

const Kernel<std::uint64_t, In<float>, In<std::uint8_t>, In<float>, In<float>, Out<float>,
             Out<float>, Out<float>, InOut<double>>&
forward() {
  static const Kernel<std::uint64_t, In<float>, In<std::uint8_t>, In<float>, In<float>, Out<float>,
                      Out<float>, Out<float>, InOut<double>>
      kernel =
          Kernel("mlp_forward")
              .cpu(run_forward)
              .products()
              .cost([](std::uint64_t, In<float> x, In<std::uint8_t>, In<float> w1, In<float> w2,
                       Out<float> h, Out<float> dz, Out<float> dh, InOut<double>) {
                const double rows = count(x.dim(0));
                const double flops =
                    2 * rows * (count(w1.shape().size()) + 2 * count(w2.shape().size()));
                const std::size_t elements =
                    x.size() + w1.size() + w2.size() + h.size() + dz.size() + dh.size();
                return Cost{flops, sizeof(float) * static_cast<double>(elements)};
              });
  return kernel;
}

const Kernel<std::int64_t, In<float>, In<float>, Out<float>>& gradient() {
  static const Kernel<std::int64_t, In<float>, In<float>, Out<float>> kernel =
      Kernel("mlp_gradient")
          .cpu(run_gradient)
          .products()
          .cost([](std::int64_t, In<float> a, In<float> d, Out<float> g) {
            const double inputs = count(a.dim(0)) * count(g.dim(0));  // the part of a that is used
            return Cost{2 * count(a.dim(0)) * count(g.shape().size()),
                        sizeof(float) * (inputs + static_cast<double>(d.size() + g.size()))};
          });
  return kernel;
}

const Kernel<float, float, std::int64_t, In<float>, InOut<float>, InOut<float>>& update() {
  static const Kernel<float, float, std::int64_t, In<float>, InOut<float>, InOut<float>> kernel =
      Kernel("mlp_update")
          .cpu(run_update)
          .cost([](float, float, std::int64_t, In<float> g, InOut<float>, InOut<float> v) {
            const double elements = count(g.shape().size());
            const double speeds = v.size() ? elements : 0;
            return Cost{2 * (elements + speeds), sizeof(float) * (3 * elements + 2 * speeds)};
          });
  return kernel;
}

const Kernel<In<float>, In<float>, In<float>, In<float>, Out<float>>& gradients() {
  static const Kernel<In<float>, In<float>, In<float>, In<float>, Out<float>> kernel =
      Kernel("mlp_gradients")
          .cpu(run_gradients)
          .products()
          .cost([](In<float> x, In<float> dh, In<float> h, In<float> dz, Out<float> g) {
            const std::size_t elements = x.size() + dh.size() + h.size() + dz.size() + g.size();
            return Cost{2 * count(x.dim(0)) * count(g.shape().size()),
                        sizeof(float) * static_cast<double>(elements)};
          });
  return kernel;
}

const Kernel<float, float, In<float>, InOut<float>, InOut<float>, InOut<float>, InOut<float>>&
update_all() {
  static const Kernel<float, float, In<float>, InOut<float>, InOut<float>, InOut<float>,
                      InOut<float>>
      kernel =
          Kernel("mlp_update_all")
              .cpu(run_update_all)
              .cost([](float, float, In<float> g, InOut<float>, InOut<float> v1, InOut<float>,
                       InOut<float>) {
                const double elements = count(g.shape().size());
                const double speeds = v1.size() ? elements : 0;
                return Cost{2 * (elements + speeds), sizeof(float) * (3 * elements + 2 * speeds)};
              });
  return kernel;
}

const Kernel<float, float, In<float>, In<float>, InOut<float>, InOut<float>>& descend() {
  static const Kernel<float, float, In<float>, In<float>, InOut<float>, InOut<float>> kernel =
      Kernel("mlp_descend")
          .cpu(run_descend)
          .products()
          .cost([](float, float, In<float> a, In<float> d, InOut<float> w, InOut<float> v) {
            const double elements = count(w.shape().size()), speeds = count(v.shape().size());
            return Cost{2 * count(a.dim(0)) * elements + 2 * speeds,
                        sizeof(float) *
                            (static_cast<double>(a.size() + d.size()) + 2 * elements + 2 * speeds)};
          });
  return kernel;
}

const Kernel<In<float>, In<std::uint8_t>, In<float>, In<float>, InOut<double>>& evaluate() {
  static const Kernel<In<float>, In<std::uint8_t>, In<float>, In<float>, InOut<double>> kernel =
      Kernel("mlp_evaluate")
          .cpu(run_evaluate)
          .products()
          .cost([](In<float> x, In<std::uint8_t>, In<float> w1, In<float> w2, InOut<double>) {
            const double weights = count(w1.shape().size() + w2.shape().size());
            return Cost{2 * count(x.dim(0)) * weights,
                        sizeof(float) * (static_cast<double>(x.size()) + weights)};
          });
  return kernel;
}

}  // namespace weft::mlp::kernels
