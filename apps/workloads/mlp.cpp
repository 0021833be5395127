// One epoch of the perceptron of `weft mlp`, data-parallel.
#include <set>
#include <utility>

#include "apps/mlp/data_kernels.hpp"
#include "apps/mlp/layer_kernels.hpp"
#include "apps/mlp/random.hpp"
#include "apps/mlp/trainer.hpp"
#include "apps/workloads/list.hpp"
#include "apps/workloads/measured.hpp"
#include "apps/workloads/mlp_reference.hpp"
#include "framework/trace.hpp"

namespace weft::workloads {
namespace {

constexpr std::size_t kPixels = 64, kClasses = 4;

// Noisy pictures, each with a bright band where its class is.
mlp::Samples draw(std::size_t count, std::uint64_t seed) {
  mlp::Samples samples{count, {}, {}};
  std::uint64_t drawn = 0;
  const auto below = [&](std::uint64_t limit) { return mlp::random_bits(seed, drawn++) % limit; };
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::uint8_t>(below(kClasses));
    samples.labels.push_back(label);
    for (std::size_t p = 0; p < kPixels; ++p) {
      const std::uint64_t base = p / (kPixels / kClasses) == label ? 90 : 40;
      samples.images.push_back(static_cast<std::uint8_t>(base + below(120)));
    }
  }
  return samples;
}

mlp::Dataset synthetic(std::size_t samples) {
  mlp::Dataset data;
  data.inputs = kPixels;
  data.classes = kClasses;
  data.train = draw(samples, 1);
  data.test = draw(64, 2);
  data.normal.scale = 1 / 50.0f;
  data.normal.offsets.assign(kPixels, -112 / 50.0f);
  return data;
}

// The data set's own mean and deviation go with it; only the number of samples is the parameter's.
mlp::Dataset from_folder(std::size_t samples) {
  mlp::Dataset data = mlp::read_dataset(mlp::default_folder());
  if (samples < data.train.count) {
    data.train.count = samples;
    data.train.images.resize(samples * data.inputs);
    data.train.labels.resize(samples);
  }
  return data;
}

std::vector<std::uint32_t> order_of_epoch(const Runtime& runtime, const mlp::Hyper& hyper,
                                          std::size_t samples) {
  const auto order = runtime.tensor<std::uint32_t>({static_cast<std::int64_t>(samples)});
  runtime.socket(0).submit(mlp::kernels::shuffle(), hyper.seed, std::uint64_t{1}, out(order));
  return order.to_host().to_vector();
}

// The trainer submits by itself; a runtime that does not record does not know how much.
std::uint64_t kernels_recorded(const Runtime& runtime) {
  if (!runtime.tracer()) return 0;
  std::set<std::uint64_t> ops;
  for (const auto& span : runtime.tracer()->collect().spans)
    if (span.kind == SpanKind::Kernel) ops.insert(span.op);
  return ops.size();
}

Result run(const Context& context) {
  const Runtime& runtime = context.runtime;
  const auto samples = static_cast<std::size_t>(context.values.number("samples"));
  const mlp::Dataset data =
      context.values.text("data") == "synthetic" ? synthetic(samples) : from_folder(samples);
  mlp::Hyper hyper;
  hyper.inputs = data.inputs;
  hyper.classes = data.classes;
  hyper.hidden = static_cast<std::size_t>(context.values.number("hidden"));
  hyper.batch = static_cast<std::size_t>(context.values.number("batch"));
  mlp::Trainer trainer(
      runtime, data, hyper, context.devices, mlp::Shares(context.devices.size()),
      context.values.text("input") == "resident" ? mlp::Input::Resident : mlp::Input::Streamed);
  trainer.initialise();
  const mlp::Parameters start = trainer.parameters();

  mlp::Epoch epoch;
  Result result;
  result.seconds = timed(runtime, [&] { epoch = trainer.train(1, [](const mlp::Progress&) {}); });

  const auto count = static_cast<double>(data.train.count);
  const double weights = static_cast<double>(mlp::shape_1(hyper).size());
  const double last = static_cast<double>(mlp::shape_2(hyper).size());
  result.flops = count * (4 * weights + 6 * last);  // forward and both gradients, errors of one
  result.figures = {{"samples_per_second", count / result.seconds}};
  if (runtime.has_data()) result.figures.emplace_back("loss", epoch.loss);
  result.ops = kernels_recorded(runtime);

  if (runtime.has_data())
    result.check = check_epoch(data, hyper, order_of_epoch(runtime, hyper, data.train.count), start,
                               trainer.parameters(), epoch.loss);
  else
    result.check = kNotChecked;
  return result;
}

}  // namespace

Workload mlp_workload() {
  using namespace mlp::kernels;
  return {"mlp",
          "an epoch of the two-layer perceptron of `weft mlp`, data-parallel",
          {number("samples", 1024, 1, 60'000, "to train on"),
           number("hidden", 32, 1, 1 << 16, "hidden neurons"),
           number("batch", 128, 1, 60'000, "samples of a step, on all devices together"),
           word("data", {"synthetic", "fashion-mnist"},
                "pictures drawn from a seed, or the data set in WEFT_DATA_DIR"),
           word("input", {"streamed", "resident"},
                "minibatches travel as bytes, or a GPU gathers from the data it holds")},
          {forward().code(), gradient().code()},
          run};
}

}  // namespace weft::workloads
