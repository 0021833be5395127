// Shares, checkpoints, and the kernels against a reference in double precision.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <random>

#include "actors/runtime.hpp"
#include "apps/mlp/checkpoint.hpp"
#include "apps/mlp/data_kernels.hpp"
#include "apps/mlp/layer_kernels.hpp"
#include "apps/mlp/layout.hpp"
#include "apps/mlp/network.hpp"
#include "apps/mlp/shares.hpp"
#include "apps/mlp/trainer.hpp"
#include "apps/mlp_tiny_data.hpp"
#include "framework/trace.hpp"
#include "support/catch.hpp"
#include "topology/discover.hpp"

namespace weft::mlp {
namespace {

RuntimeOptions emulated() {
  RuntimeOptions options;
  options.gpus = GpuMode::Emulated;
  return options;
}

TEST_CASE("shares follow a device that becomes slower, and the losses stay those of one",
          "[apps]") {
  const TemporaryFolder folder("mlp_tuned");
  write_tiny_data(folder.path());
  const Dataset data = read_dataset(folder.path().string());
  Hyper hyper;
  hyper.inputs = data.inputs;
  hyper.hidden = 32;
  hyper.classes = data.classes;
  hyper.batch = 64;
  constexpr std::uint64_t kEpochs = 4;
  std::atomic<bool> is_slow{false};
  auto runtime_of = [&] {
    RuntimeOptions options;
    options.machine = parse_machine("1 socket x 2 cores, 2 gpus");
    options.simulate = true;
    options.trace = true;
    options.emulated = EmulatedOptions{};
    options.emulated->delay = [&](const LaneOp& op) {
      const bool is_it = op.lane.starts_with("gpu1") && op.name.starts_with("mlp_");
      return std::chrono::nanoseconds(is_slow && is_it ? 500'000 : 0);
    };
    return options;
  };
  auto nothing = [](const Progress&) {};

  std::vector<double> alone;
  {
    const Runtime runtime(runtime_of());
    Trainer trainer(runtime, data, hyper, {runtime.gpu(0)}, Shares(1));
    trainer.initialise();
    for (std::uint64_t e = 1; e <= kEpochs; ++e) alone.push_back(trainer.train(e, nothing).loss);
  }
  const Runtime runtime(runtime_of());
  Trainer trainer(runtime, data, hyper, {runtime.gpu(0), runtime.gpu(1)}, Shares(2),
                  Input::Streamed, true);
  trainer.initialise();
  for (std::uint64_t e = 1; e <= kEpochs; ++e) {
    is_slow = e >= 2;
    runtime.tracer()->clear();
    CHECK(trainer.train(e, nothing).loss == Approx(alone[e - 1]).epsilon(1e-3));
    const bool has_changed = trainer.tune_shares(runtime.tracer()->collect());
    if (e <= 2) CHECK(has_changed == (e == 2));
  }
  CHECK(trainer.shares().fraction(1) < 0.2);
  CHECK(trainer.evaluate().accuracy > 0.5);
}

TEST_CASE("shards cover a minibatch, in parts as their weights", "[apps]") {
  CHECK(Shares(2).cuts(256) == std::vector<std::size_t>{0, 128, 256});
  CHECK(Shares({1, 1, 0.5}).cuts(250) == std::vector<std::size_t>{0, 100, 200, 250});
  CHECK(Shares({1, 0}).cuts(7) == std::vector<std::size_t>{0, 7, 7});
  CHECK(Shares({0, 1}).cuts(7) == std::vector<std::size_t>{0, 0, 7});
  CHECK(Shares(3).cuts(1).back() == 1);
  CHECK(Shares({3, 1}).fraction(0) == Approx(0.75));
  CHECK_THROWS_AS(Shares({0, 0}), std::invalid_argument);
  CHECK_THROWS_AS(Shares({1, -1}), std::invalid_argument);
  CHECK_THROWS_AS(Shares({1, std::numeric_limits<double>::infinity()}), std::invalid_argument);
}

TEST_CASE("a list of shares is read, or refused with its reason", "[apps]") {
  CHECK_FALSE(parse_shares("auto", 2));
  CHECK(parse_shares("1,1,0.5", 3)->weights() == std::vector<double>{1, 1, 0.5});
  for (const char* text : {"1", "1,2,3", "1,x", "1,-1", "", "0,0", "1;2", "nan,1", "inf,1"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_shares(text, 2), std::invalid_argument);
  }
}

TEST_CASE("measured shares follow speed in steps that swallow noise", "[apps]") {
  CHECK(shares_for({1.0, 1.01}).weights() == std::vector<double>{1, 1});
  CHECK(shares_for({2.0, 1.0}).weights() == std::vector<double>{0.5, 1});
  CHECK(shares_for({1.2, 1.3, 1.0}).weights() == std::vector<double>{0.75, 0.75, 1});
  CHECK(shares_for({1.0, 7.0}).weights() == std::vector<double>{1, 0.125});
  CHECK(shares_for({1.0, 1e6}).weights() == std::vector<double>{1, 1.0 / 64});
  CHECK(shares_for({0.0, 0.0}).weights() == std::vector<double>{1, 1});
}

Checkpoint some_checkpoint() {
  Checkpoint checkpoint;
  checkpoint.hyper = {5, 3, 2, 16, 0.05f, 0.9f, 12'345'678'901'234'567'890u};
  checkpoint.epoch = 7;
  checkpoint.samples = 100;
  checkpoint.fingerprint = 0xdeadbeef;
  checkpoint.devices = {"gpu0", "socket0"};
  checkpoint.shares = {1, 0.1};
  checkpoint.parameters.w1.assign(18, 0.1f);
  checkpoint.parameters.w2.assign(8, -1e-30f);
  checkpoint.parameters.v1.assign(18, 3.0f);
  checkpoint.parameters.v2.assign(8, 0.0f);
  return checkpoint;
}

TEST_CASE("a checkpoint is read as it was written", "[apps]") {
  const TemporaryFolder folder("checkpoint");
  const std::string file = folder.file("c");
  Checkpoint written = some_checkpoint();
  for (float momentum : {0.9f, 0.0f}) {
    written.hyper.momentum = momentum;
    if (momentum == 0) written.parameters.v1 = written.parameters.v2 = {};
    write_checkpoint(file, written);
    const Checkpoint read = read_checkpoint(file);
    CHECK(read.hyper.rate == written.hyper.rate);
    CHECK(read.hyper.seed == written.hyper.seed);
    CHECK(read.hyper.momentum == momentum);
    CHECK(read.epoch == 7);
    CHECK(read.devices == written.devices);
    CHECK(read.shares == written.shares);
    CHECK(read.parameters.w1 == written.parameters.w1);
    CHECK(read.parameters.w2 == written.parameters.w2);
    CHECK(read.parameters.v1 == written.parameters.v1);
  }
}

TEST_CASE("a damaged checkpoint is refused wherever the damage is", "[apps]") {
  const TemporaryFolder folder("checkpoint");
  const std::string file = folder.file("c");
  write_checkpoint(file, some_checkpoint());
  const std::string good = read_file(file);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    write_file(file, bad);
    CHECK_THROWS_AS(read_checkpoint(file), CheckpointError);
    write_file(file, good.substr(0, at));
    CHECK_THROWS_AS(read_checkpoint(file), CheckpointError);
  }
  CHECK_THROWS_AS(read_checkpoint(folder.file("none")), CheckpointError);
  CHECK_THROWS_AS(write_checkpoint(folder.file("no/folder"), some_checkpoint()), CheckpointError);
}

TEST_CASE("the order of samples is a permutation that depends on seed and epoch", "[apps]") {
  Runtime rt(emulated());
  auto order_of = [&](std::uint64_t seed, std::uint64_t epoch) {
    auto order = rt.tensor<std::uint32_t>({1000});
    rt.socket(0).submit(kernels::shuffle(), seed, epoch, out(order));
    return order.to_host().to_vector();
  };
  const auto first = order_of(1, 1);
  CHECK(first == order_of(1, 1));
  CHECK(first != order_of(1, 2));
  CHECK(first != order_of(2, 1));
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  for (std::uint32_t i = 0; i < sorted.size(); ++i) REQUIRE(sorted[i] == i);
}

// The two-layer perceptron written out in double precision.
struct Reference {
  std::size_t inputs, hidden, classes, rows;
  std::vector<double> g1, g2;
  double loss = 0;

  Reference(const Hyper& h, const std::vector<float>& x, const std::vector<std::uint8_t>& y,
            const std::vector<float>& w1, const std::vector<float>& w2)
      : inputs(static_cast<std::size_t>(row_with_one(std::int64_t(h.inputs)))),
        hidden(h.hidden),
        classes(h.classes),
        rows(y.size()),
        g1(w1.size()),
        g2(w2.size()) {
    for (std::size_t r = 0; r < rows; ++r) {
      std::vector<double> a(hidden + 1, 1.0), z(classes), da(hidden);
      for (std::size_t j = 0; j < hidden; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < inputs; ++i)
          sum += double(x[r * inputs + i]) * w1[i * hidden + j];
        a[j] = std::max(sum, 0.0);
      }
      double whole = 0;
      for (std::size_t c = 0; c < classes; ++c) {
        for (std::size_t j = 0; j <= hidden; ++j) z[c] += a[j] * w2[j * classes + c];
        whole += std::exp(z[c]);
      }
      loss += std::log(whole) - z[y[r]];
      for (std::size_t c = 0; c < classes; ++c) {
        const double d = (std::exp(z[c]) / whole - (c == y[r])) / double(rows);
        for (std::size_t j = 0; j <= hidden; ++j) g2[j * classes + c] += a[j] * d;
        for (std::size_t j = 0; j < hidden; ++j) da[j] += d * w2[j * classes + c];
      }
      for (std::size_t i = 0; i < inputs; ++i)
        for (std::size_t j = 0; j < hidden; ++j)
          if (a[j] > 0) g1[i * hidden + j] += x[r * inputs + i] * da[j];
    }
  }
};

double largest_difference(const std::vector<float>& is, const std::vector<double>& wanted) {
  double largest = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    largest = std::max(largest, std::abs(double(is[i]) - wanted[i]));
  return largest;
}

TEST_CASE("gradients of shards on any devices add up to those of the definition", "[apps]") {
  Runtime rt(emulated());
  const Hyper hyper{30, 17, 5, 100, 0.1f, 0.9f, 3};
  const std::size_t rows = 100;
  std::mt19937 random(7);
  std::uniform_real_distribution<float> unit(0, 1);
  std::vector<float> x;
  std::vector<std::uint8_t> y;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = 0; i < hyper.inputs; ++i) x.push_back(unit(random));
    x.push_back(1);
    x.push_back(0);
    y.push_back(static_cast<std::uint8_t>(random() % hyper.classes));
  }
  Network first(rt.socket(0), hyper);
  first.initialise();
  const auto w1 = first.w1().to_host().to_vector(), w2 = first.w2().to_host().to_vector();
  const Reference wanted(hyper, x, y, w1, w2);

  // All on the socket; then 70, 0 and 30 rows on two GPUs and the socket.
  for (const auto& cuts : {std::vector<std::size_t>{0, 100}, {0, 70, 70, 100}}) {
    std::vector<double> g1(w1.size()), g2(w2.size());
    double loss = 0;
    for (std::size_t d = 0; d + 1 < cuts.size(); ++d) {
      const auto count = static_cast<std::int64_t>(cuts[d + 1] - cuts[d]);
      const auto width = row_with_one(std::int64_t(hyper.inputs));
      const auto from = static_cast<std::ptrdiff_t>(cuts[d]);
      const Shard shard{
          rt.from_host(
              std::vector<float>(x.begin() + from * width, x.begin() + (from + count) * width),
              {count, width}),
          rt.from_host(std::vector<std::uint8_t>(y.begin() + from, y.begin() + from + count),
                       {count})};
      Network network(d < 2 && cuts.size() > 2 ? rt.gpu(d) : rt.socket(0), hyper);
      network.initialise();
      network.reset_score();
      network.forward(shard, rows);
      // The first layer in two parts.
      std::size_t at = 0;
      for (const Part& part : {Part{1, 0, 13}, Part{1, 13, 19}}) {
        const auto rows_of_g1 = network.gradient(part).to_host();
        for (const float value : rows_of_g1.span()) g1[at++] += value;
      }
      const auto whole = network.gradient({2, 0, 24}).to_host();
      for (std::size_t i = 0; i < g2.size(); ++i) g2[i] += whole[i];
      loss += network.score().to_host()[0];
    }
    CHECK(largest_difference({g1.begin(), g1.end()}, wanted.g1) < 1e-6);
    CHECK(largest_difference({g2.begin(), g2.end()}, wanted.g2) < 1e-6);
    CHECK(loss == Approx(wanted.loss).epsilon(1e-6));
  }
}

TEST_CASE("the parts of a gradient cover it, the last layer first", "[apps]") {
  for (std::size_t hidden : {1u, 256u, 4096u}) {
    const auto parts = gradient_parts({784, hidden, 10, 256, 0.1f, 0.9f, 1});
    CHECK(parts[0].layer == 2);
    CHECK(parts[0].rows == row_with_one(hidden));
    std::int64_t next = 0;
    for (std::size_t p = 1; p < parts.size(); ++p) {
      CHECK(parts[p].layer == 1);
      CHECK(parts[p].first == next);
      next += parts[p].rows;
    }
    CHECK(next == 792);
  }
}

TEST_CASE("the whole gradient is its parts one after the other, and so is the step", "[apps]") {
  Runtime rt(emulated());
  const Hyper hyper{30, 17, 5, 100, 0.1f, 0.9f, 3};
  const Device device = rt.gpu(0);
  const auto random = [&](const Shape& shape, std::uint64_t seed) {
    return rt.uniform(shape, device, seed);
  };
  const Shape first = stored_shape_1(hyper), second = stored_shape_2(hyper);
  const auto x = random({40, first[0]}, 1), dh = random({40, first[1]}, 2),
             h = random({40, second[0]}, 3), dz = random({40, second[1]}, 4);
  auto whole = rt.tensor<float>({first.size() + second.size()}), g1 = rt.tensor<float>(first),
       g2 = rt.tensor<float>(second);
  device.submit(kernels::gradients(), in(x), in(dh), in(h), in(dz), out(whole));
  device.submit(kernels::gradient(), std::int64_t{0}, in(x), in(dh), out(g1));
  device.submit(kernels::gradient(), std::int64_t{0}, in(h), in(dz), out(g2));
  auto parts = g1.to_host().to_vector();
  const auto rest = g2.to_host().to_vector();
  parts.insert(parts.end(), rest.begin(), rest.end());
  CHECK(whole.to_host().to_vector() == parts);
  for (const float momentum : {0.0f, 0.9f}) {
    const Shape none{0};
    const auto v_shape = [&](const Shape& shape) { return momentum == 0 ? none : shape; };
    auto w1 = random(first, 5), w2 = random(second, 6), v1 = random(v_shape(first), 7),
         v2 = random(v_shape(second), 8);
    auto u1 = random(first, 5), u2 = random(second, 6), t1 = random(v_shape(first), 7),
         t2 = random(v_shape(second), 8);
    device.submit(kernels::update_all(), 0.1f, momentum, in(whole), inout(w1), inout(v1), inout(w2),
                  inout(v2));
    device.submit(kernels::update(), 0.1f, momentum, std::int64_t{0}, in(g1), inout(u1), inout(t1));
    device.submit(kernels::update(), 0.1f, momentum, std::int64_t{0}, in(g2), inout(u2), inout(t2));
    CHECK(w1.to_host().to_vector() == u1.to_host().to_vector());
    CHECK(w2.to_host().to_vector() == u2.to_host().to_vector());
    CHECK(v1.to_host().to_vector() == t1.to_host().to_vector());
    CHECK(v2.to_host().to_vector() == t2.to_host().to_vector());
  }
}

TEST_CASE("a step in one op is the same step as gradient and update", "[apps]") {
  Runtime rt(emulated());
  for (float momentum : {0.0f, 0.9f}) {
    const Hyper hyper{20, 40, 4, 50, 0.1f, momentum, 3};
    const Shard shard{rt.uniform({50, 24}, rt.socket(0), 5),
                      rt.from_host(std::vector<std::uint8_t>(50, 2), {50})};
    Network together(rt.socket(0), hyper), apart(rt.gpu(0), hyper);
    for (Network* network : {&together, &apart}) {
      network->initialise();
      network->reset_score();
      for (int i = 0; i < 3; ++i) {
        network->forward(shard, 50);
        if (network == &together) {
          network->descend(2);
          network->descend(1);
        } else {
          for (const Part& part : {Part{2, 0, 48}, Part{1, 0, 8}, Part{1, 8, 16}})
            network->update(part, network->gradient(part));
        }
      }
    }
    const auto a = together.w1().to_host(), b = apart.w1().to_host();
    for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(a[i] == Approx(b[i]).margin(1e-6));
  }
}

}  // namespace
}  // namespace weft::mlp
