#include "apps/mlp/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "apps/mlp/data_kernels.hpp"
#include "apps/mlp/layer_kernels.hpp"
#include "apps/mlp/layout.hpp"
#include "apps/mlp/speed.hpp"
#include "framework/memory_pool.hpp"
#include "framework/trace.hpp"

namespace weft::mlp {
namespace {

// How far submission, and with it the loading of minibatches, runs ahead of the devices: a step
// that is fed takes some hundred microseconds from its submission to its end where a core has to be
// woken to gather it, and 30 of a GPU.
constexpr std::size_t kStepsAhead = 24;
constexpr auto kLookEvery = std::chrono::milliseconds(250);  // at the loss so far

double seconds_since(const Runtime& runtime, std::chrono::nanoseconds start) {
  return std::chrono::duration<double>(runtime.now() - start).count();
}

Tensor<std::uint8_t> to_tensor(const Runtime& runtime, const std::vector<std::uint8_t>& bytes,
                               std::size_t rows) {
  const auto height = static_cast<std::int64_t>(rows);
  const auto width = static_cast<std::int64_t>(bytes.size() / rows);
  return runtime.from_host(bytes, width == 1 ? Shape{height} : Shape{height, width});
}

/// The socket next to a GPU, or the socket itself.
Device loader_of(const Runtime& runtime, const Device& device) {
  if (device.kind() == DeviceKind::Socket) return device;
  const Machine& machine = runtime.machine();
  for (const MemoryId memory : machine.gpus[device.place().number].near)
    for (const SocketId socket : machine.memories[memory.value].near)
      return runtime.socket(socket.value);
  return runtime.socket(0);
}

// Of up to `count` steps from number `first` on.
std::size_t rows_together(const std::vector<std::size_t>& rows, std::size_t first,
                          std::size_t count) {
  std::size_t sum = 0;
  for (std::size_t s = first; s < std::min(first + count, rows.size()); ++s) sum += rows[s];
  return sum;
}

void wait_for(const std::vector<Future>& futures) {
  for (const Future& future : futures) future.wait();
}

/// Copies of the devices' scores, on their way to the host.
class Scores {
 public:
  Scores(const std::vector<Tensor<double>>& scores, std::size_t samples) : samples_(samples) {
    for (const auto& score : scores) parts_.push_back(score.to_host());
  }
  [[nodiscard]] bool are_here() const {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const auto& part) { return part.future().is_settled(); });
  }
  /// Waits. Loss and accuracy are means over the samples.
  [[nodiscard]] Epoch mean() const {
    Epoch result;
    for (const auto& part : parts_) {
      result.loss += part[0];
      result.accuracy += part[1];
    }
    result.loss /= static_cast<double>(samples_);
    result.accuracy /= static_cast<double>(samples_);
    return result;
  }

 private:
  std::size_t samples_;
  std::vector<HostArray<double>> parts_;
};

std::vector<Tensor<double>> scores_of(const std::vector<Network>& networks) {
  std::vector<Tensor<double>> scores;
  for (const Network& network : networks) scores.push_back(network.score());
  return scores;
}

}  // namespace

Trainer::Trainer(const Runtime& runtime, const Dataset& data, const Hyper& hyper,
                 std::vector<Device> devices, Shares shares, Input input, bool plans)
    : runtime_(runtime),
      hyper_(hyper),
      parts_(gradient_parts(hyper)),
      devices_(std::move(devices)),
      shares_(std::move(shares)),
      input_(input),
      plans_(plans),
      group_(runtime.collective(devices_)),
      scale_(data.normal.scale),
      offsets_(runtime.from_host(data.normal.offsets, {static_cast<std::int64_t>(data.inputs)})),
      train_count_(data.train.count),
      test_count_(data.test.count),
      train_images_(to_tensor(runtime, data.train.images, data.train.count)),
      train_labels_(to_tensor(runtime, data.train.labels, data.train.count)),
      test_images_(to_tensor(runtime, data.test.images, data.test.count)),
      test_labels_(to_tensor(runtime, data.test.labels, data.test.count)) {
  for (const Device& device : devices_) {
    networks_.emplace_back(device, hyper_);
    loaders_.push_back(loader_of(runtime_, device));
  }
  // GPUs with links between them sum up faster than several parts could hide: splitting the sum
  // beside the product gains nothing there, for it takes its multiprocessors.
  is_one_sum_ = std::all_of(devices_.begin(), devices_.end(), [&](const Device& device) {
    return runtime.engine_of(device) == "cuda";
  });
}

void Trainer::initialise() {
  for (Network& network : networks_) network.initialise();
}

void Trainer::set(const Parameters& parameters) {
  const auto tensor = [&](std::vector<float> values, const Shape& shape) {
    values.resize(static_cast<std::size_t>(shape.size()));  // rows of zeros at the end
    return runtime_.from_host(values, shape);
  };
  const auto w1 = tensor(parameters.w1, stored_shape_1(hyper_));
  const auto w2 = tensor(parameters.w2, stored_shape_2(hyper_));
  const auto v1 = tensor(parameters.v1, stored_velocity_shape_1(hyper_));
  const auto v2 = tensor(parameters.v2, stored_velocity_shape_2(hyper_));
  for (Network& network : networks_) network.set(w1, w2, v1, v2);
}

Parameters Trainer::parameters() const {
  const Network& network = networks_.front();
  const auto w1 = network.w1().to_host(), w2 = network.w2().to_host();
  const auto v1 = network.v1().to_host(), v2 = network.v2().to_host();
  const auto values = [](const HostArray<float>& stored, const Shape& shape) {
    std::vector<float> all = stored.to_vector();
    all.resize(static_cast<std::size_t>(shape.size()));
    return all;
  };
  return {values(w1, shape_1(hyper_)), values(w2, shape_2(hyper_)),
          values(v1, velocity_shape_1(hyper_)), values(v2, velocity_shape_2(hyper_))};
}

Tensor<std::uint8_t> Trainer::gather(const Tensor<std::uint8_t>& images,
                                     const Tensor<std::uint8_t>& labels, const Order& order,
                                     std::size_t first, std::int64_t count,
                                     const Device& loader) const {
  const auto records = loader.tensor<std::uint8_t>({count, record_bytes(offsets_.shape()[0])});
  loader.submit(kernels::gather(), std::uint64_t{first}, in(images), in(labels), in(order),
                out(records));
  return records;
}

// How many steps' minibatches are gathered and copied together: each copy, and each wait of the
// device for one, costs some microseconds, and the first step waits for all of them. On an H200 an
// epoch of h256 b256 takes 7.3 ms with 4, 6.8 with 8 or 12, 8.7 with 24 (2026-12-01).
std::size_t Trainer::steps_together() const {
  constexpr std::size_t kBytes = 2'500'000, kMost = 12;
  if (devices_.size() != 1 || !is_fed(0)) return 1;  // devices' parts are not in a row
  const auto bytes = hyper_.batch * static_cast<std::size_t>(record_bytes(offsets_.shape()[0]));
  return std::clamp<std::size_t>(kBytes / bytes, 1, kMost);
}

// A shard a device of so many rows.
std::vector<Shard> Trainer::load(const Tensor<std::uint8_t>& images,
                                 const Tensor<std::uint8_t>& labels, const Where& where,
                                 std::size_t rows) const {
  const std::vector<std::size_t> cuts = shares_.cuts(rows);
  const std::int64_t pixels = offsets_.shape()[0];  // of a sample
  std::vector<Shard> shards;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const Device& device = devices_[d];
    const auto height = static_cast<std::int64_t>(cuts[d + 1] - cuts[d]);
    Shard shard{device.tensor<float>({height, row_with_one(pixels)}),
                device.tensor<std::uint8_t>({height})};
    if (is_fed(d)) {
      const bool has_records = bool(where.records);
      const auto records = has_records ? where.records
                                       : gather(images, labels, where.order, where.first + cuts[d],
                                                height, loaders_[d]);
      device.submit(kernels::normalise(), std::uint64_t{has_records ? where.in_records : 0}, scale_,
                    in(offsets_), in(records), out(shard.x), out(shard.y));
    } else {
      const bool has_window = !where.windows.empty();
      const std::size_t begin = (has_window ? where.in_window : where.first) + cuts[d];
      device.submit(kernels::load(), std::uint64_t{begin}, scale_, in(offsets_), in(images),
                    in(labels), in(has_window ? where.windows[d] : where.order), out(shard.x),
                    out(shard.y));
    }
    shards.push_back(std::move(shard));
  }
  return shards;
}

std::vector<Future> Trainer::step(const Where& where, std::size_t rows) {
  const std::vector<Shard> shards = load(train_images_, train_labels_, where, rows);
  for (std::size_t d = 0; d < networks_.size(); ++d) networks_[d].forward(shards[d], rows);

  if (networks_.size() == 1) return {networks_[0].descend(2), networks_[0].descend(1)};

  if (is_one_sum_) {
    std::vector<Tensor<float>> sums;
    for (const Network& network : networks_) sums.push_back(network.gradients());
    group_.all_reduce(sums);
    std::vector<Future> updates;
    for (std::size_t d = 0; d < networks_.size(); ++d)
      updates.push_back(networks_[d].update_all(sums[d]));
    return updates;
  }

  // The sum of one part travels while the devices work on the next.
  std::vector<std::vector<Tensor<float>>> sums;
  for (const Part& part : parts_) {
    sums.emplace_back();
    for (const Network& network : networks_) sums.back().push_back(network.gradient(part));
    group_.all_reduce(sums.back());
  }
  std::vector<Future> updates;
  for (std::size_t p = 0; p < parts_.size(); ++p)
    for (std::size_t d = 0; d < networks_.size(); ++d)
      updates.push_back(networks_[d].update(parts_[p], sums[p][d]));
  return updates;
}

// As many as run ahead: each has its own minibatch in memory, so none waits for the one before. 0
// where that would take much of a device's, or a pass has too few.
std::size_t Trainer::steps_in_plan() const {
  constexpr std::size_t kShare = 16;  // and as much for what is left at the end of a pass
  if (!plans_) return 0;
  std::size_t steps = std::min(kStepsAhead, train_count_ / hyper_.batch / 2);
  const auto row =
      static_cast<std::size_t>(row_with_one(offsets_.shape()[0]) +
                               2 * row_with_one(static_cast<std::int64_t>(hyper_.hidden)));
  const std::vector<std::size_t> cuts = shares_.cuts(hyper_.batch);
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const std::size_t bytes = (cuts[d + 1] - cuts[d]) * row * sizeof(float);
    const MemoryPool& memory = *runtime_.fabric().memories[devices_[d].place().memory];
    if (bytes > 0) steps = std::min(steps, memory.budget() / kShare / bytes);
  }
  return steps < 2 ? 0 : steps;
}

// Of the steps from sample `first` on, `count` samples in all; the last may have fewer.
std::vector<std::size_t> Trainer::rows_of_steps(std::size_t first, std::size_t count) const {
  std::vector<std::size_t> rows;
  for (const std::size_t end = first + count; first < end; first += rows.back())
    rows.push_back(std::min(hyper_.batch, end - first));
  return rows;
}

// The first time they are submitted and recorded.
Future Trainer::planned_steps(Steps& steps, const Order& order, std::size_t first) {
  if (!steps.plan) {
    std::size_t count = 0;
    for (const std::size_t rows : steps.rows) count += rows;
    for (const Device& device : devices_)
      steps.windows.push_back(device.tensor<std::uint32_t>({static_cast<std::int64_t>(count)}));
  }
  const std::size_t together = steps_together();
  bool is_any_fed = false;
  for (std::size_t d = 0; d < devices_.size(); ++d)
    if (is_fed(d))
      is_any_fed = true;
    else
      devices_[d].submit(kernels::take(), std::uint64_t{first}, in(order), out(steps.windows[d]));
  if (!steps.plan) {
    std::vector<Future> updates;
    steps.plan = runtime_.record([&] {
      std::size_t before = 0, in_records = 0;
      Tensor<std::uint8_t> records;
      for (std::size_t s = 0; s < steps.rows.size(); ++s) {
        if (together > 1 && s % together == 0) {
          records = gather(train_images_, train_labels_, order, first + before,
                           static_cast<std::int64_t>(rows_together(steps.rows, s, together)),
                           loaders_[0]);
          in_records = 0;
        }
        const std::size_t rows = steps.rows[s];
        for (Future& update :
             step({order, first + before, steps.windows, before, records, in_records}, rows))
          updates.push_back(std::move(update));
        before += rows;
        in_records += rows;
      }
    });
    steps.recorded = order;
    return when_all(updates);
  }
  if (is_any_fed) {
    steps.plan.bind(steps.recorded, order);
    std::size_t gathers = 0, at = first;
    for (std::size_t s = 0; s < steps.rows.size(); s += together) {
      const std::size_t rows = rows_together(steps.rows, s, together);
      const std::vector<std::size_t> cuts = shares_.cuts(rows);
      for (std::size_t d = 0; d < devices_.size(); ++d)
        if (is_fed(d))
          steps.plan.set_scalar_of<0>(kernels::gather(), gathers++, std::uint64_t{at + cuts[d]});
      at += rows;
    }
  }
  return steps.plan.replay();
}

void Trainer::forget_plans() {
  many_ = {};
  rest_ = {};
}

Trainer::Order Trainer::shuffled(std::uint64_t epoch) const {
  Order order = loaders_[0].tensor<std::uint32_t>({static_cast<std::int64_t>(train_count_)});
  loaders_[0].submit(kernels::shuffle(), hyper_.seed, epoch, out(order));
  return order;
}

Epoch Trainer::train(std::uint64_t epoch, const std::function<void(const Progress&)>& on_progress) {
  const auto start = runtime_.now();
  const Order order = next_epoch_ == epoch && next_order_ ? next_order_ : shuffled(epoch);
  for (Network& network : networks_) network.reset_score();

  struct Step {
    std::vector<Future> updates;
    std::size_t samples;
  };
  std::deque<Step> ahead;
  Progress progress;
  std::optional<Scores> look;
  auto looked = start;
  const std::size_t planned = steps_in_plan() * hyper_.batch;
  std::size_t samples_ahead = 0;
  for (std::size_t first = 0, rows = 0; first < train_count_; first += rows) {
    const std::size_t left = train_count_ - first;
    if (planned > 0) {
      rows = std::min(planned, left);
      Steps& steps = rows == planned ? many_ : rest_;
      if (steps.rows.empty()) steps.rows = rows_of_steps(first, rows);
      ahead.push_back({{planned_steps(steps, order, first)}, rows});
    } else {
      rows = std::min(hyper_.batch, left);
      ahead.push_back({step({order, first, {}, 0, {}, 0}, rows), rows});
    }
    samples_ahead += rows;
    if (samples_ahead <= kStepsAhead * hyper_.batch) continue;
    wait_for(ahead.front().updates);
    progress.samples += ahead.front().samples;
    samples_ahead -= ahead.front().samples;
    ahead.pop_front();
    if (look && look->are_here()) progress.loss = std::exchange(look, {})->mean().loss;
    if (!look && runtime_.now() - looked > kLookEvery) {
      looked = runtime_.now();
      look.emplace(scores_of(networks_), first + rows);
    }
    on_progress(progress);
  }
  next_order_ = shuffled(epoch + 1);  // beside the last steps
  next_epoch_ = epoch + 1;
  for (const Step& rest : ahead) wait_for(rest.updates);
  const double seconds = seconds_since(runtime_, start);
  Epoch result = Scores(scores_of(networks_), train_count_).mean();
  result.seconds = seconds;
  result.samples_per_second = static_cast<double>(train_count_) / seconds;
  runtime_.wait_idle();
  return result;
}

Epoch Trainer::evaluate() {
  const auto start = runtime_.now();
  if (test_.empty())
    test_ = load(test_images_, test_labels_, {in_order(test_count_), 0, {}, 0, {}, 0}, test_count_);
  std::vector<Tensor<double>> scores;
  for (std::size_t d = 0; d < networks_.size(); ++d) {
    scores.push_back(devices_[d].tensor<double>({2}));
    devices_[d].submit(kernels::no_score(), out(scores[d]));
    networks_[d].evaluate(test_[d], scores[d]);
  }
  Epoch result = Scores(scores, test_count_).mean();
  result.seconds = seconds_since(runtime_, start);
  result.samples_per_second = static_cast<double>(test_count_) / result.seconds;
  runtime_.wait_idle();
  return result;
}

Trainer::Order Trainer::in_order(std::size_t count) const {
  Order order = loaders_[0].tensor<std::uint32_t>({static_cast<std::int64_t>(count)});
  loaders_[0].submit(kernels::in_order(), out(order));
  return order;
}

bool Trainer::tune_shares(const TraceData& data) {
  constexpr double kWorthIt = 1.5;
  const std::vector<double> seconds = seconds_per_step(data, devices_, 1);
  std::vector<double> per_sample;
  double shortest = 0, longest = 0;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const double fraction = shares_.fraction(d);
    if (fraction == 0 || seconds[d] == 0) return false;  // nothing is known of it
    shortest = d == 0 ? seconds[d] : std::min(shortest, seconds[d]);
    longest = std::max(longest, seconds[d]);
    per_sample.push_back(seconds[d] / fraction);
  }
  if (longest <= kWorthIt * shortest) return false;
  const Shares tuned = shares_for(per_sample);
  if (tuned.weights() == shares_.weights()) return false;
  shares_ = tuned;
  forget_plans();  // other rows for each device
  test_.clear();
  return true;
}

void Trainer::measure_shares() {
  constexpr std::size_t kSteps = 16;
  const std::size_t rows = std::min(hyper_.batch, train_count_);
  const Order order = in_order(train_count_);
  initialise();
  for (Network& network : networks_) network.reset_score();
  // The first round warms everything up; what devices take from each other depends on their shares,
  // so the last round measures with almost the right ones.
  for (int round = 0; round < 3; ++round) {
    runtime_.wait_idle();
    runtime_.tracer()->clear();
    for (std::size_t i = 0; i < kSteps; ++i) step({order, 0, {}, 0, {}, 0}, rows);
    runtime_.wait_idle();
    if (round == 0) continue;
    const auto seconds = seconds_per_step(runtime_.tracer()->collect(), devices_, kSteps);
    const auto cuts = shares_.cuts(rows);
    std::vector<double> per_sample;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      // Devices of one kind share what they took.
      double sum = 0;
      std::size_t samples = 0;
      for (std::size_t other = 0; other < devices_.size(); ++other)
        if (are_alike(runtime_.machine(), devices_[d], devices_[other])) {
          sum += seconds[other];
          samples += cuts[other + 1] - cuts[other];
        }
      per_sample.push_back(sum / static_cast<double>(std::max<std::size_t>(samples, 1)));
    }
    shares_ = shares_for(per_sample);
  }
  runtime_.tracer()->clear();
}

}  // namespace weft::mlp
