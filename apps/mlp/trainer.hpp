#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "actors/collective.hpp"
#include "actors/runtime.hpp"
#include "apps/mlp/dataset.hpp"
#include "apps/mlp/network.hpp"
#include "apps/mlp/shares.hpp"

namespace weft {
struct TraceData;
}

namespace weft::mlp {

/// Where a pass over the training set is.
struct Progress {
  std::size_t samples = 0;     ///< done
  std::optional<double> loss;  ///< mean of the samples so far, a moment ago
};

/// Where a GPU's minibatches come from.
enum class Input {
  Streamed,  ///< a socket gathers each from host memory; it travels as bytes
  Resident,  ///< the training set is copied to the GPU once, which gathers by itself
};

/// What one pass over the training set gave. Loss and accuracy are of each sample when it was
/// trained on.
struct Epoch {
  double loss = 0, accuracy = 0;
  double seconds = 0, samples_per_second = 0;
};

/// Data-parallel training: every device has its own copy of the network and trains its shard of
/// each minibatch. A socket gathers the minibatches some steps ahead; the gradients are summed
/// over the devices layer by layer, a large one in parts, each as soon as it is there, while the
/// rest of the backward pass runs.
///
/// There is no schedule in here: each step submits its ops, and what they read and write orders
/// them. With `plans`, some steps in a row are recorded once and then replayed, each with tensors
/// of its own, so that minibatches are still gathered ahead; the results are the same to the bit.
/// One thread.
class Trainer {
 public:
  /// Puts the data set into host memory. `runtime` outlives it.
  Trainer(const Runtime& runtime, const Dataset& data, const Hyper& hyper,
          std::vector<Device> devices, Shares shares, Input input = Input::Streamed,
          bool plans = false);

  /// Random weights.
  void initialise();
  /// Weights and velocities as a checkpoint holds them.
  void set(const Parameters& parameters);
  [[nodiscard]] Parameters parameters() const;

  /// One pass over the training set in the order of (seed, epoch). Calls `on_progress` every few
  /// steps. Nothing is in flight when it returns. Throws `OpError` if an op failed.
  Epoch train(std::uint64_t epoch, const std::function<void(const Progress&)>& on_progress);
  /// Mean loss and accuracy on the test set.
  Epoch evaluate();

  /// Divides the work by speed: trains some steps, throws the result away and looks at how long
  /// each device took for a sample. The runtime must be recording. Before `initialise` or `set`.
  void measure_shares();

  /// Divides anew, by what the steps in `data` took, if that differs by more than half among the
  /// devices: small differences change no run's numbers. Whether it did. Nothing is in flight.
  bool tune_shares(const TraceData& data);

  [[nodiscard]] const Shares& shares() const { return shares_; }
  [[nodiscard]] const std::vector<Device>& devices() const { return devices_; }

 private:
  using Order = Tensor<std::uint32_t>;

  // Where minibatches are in the training set: at `first` of `order`. `windows`, a device each:
  // parts of it where devices gather by themselves, at `in_window` of them; empty: `order`.
  // `records`: what is gathered for the one device already, at `in_records` of them; or nothing.
  struct Where {
    const Order& order;
    std::size_t first = 0;
    const std::vector<Order>& windows;
    std::size_t in_window = 0;
    Tensor<std::uint8_t> records;
    std::size_t in_records = 0;
  };
  // Some steps in a row as a plan. What is where in the training set is not in it: a window of the
  // order is copied to each device before a replay.
  struct Steps {
    std::vector<std::size_t> rows;  // of each
    Plan plan;
    Order recorded;  // the order that it was recorded with
    std::vector<Order> windows;
  };

  [[nodiscard]] std::vector<Shard> load(const Tensor<std::uint8_t>& images,
                                        const Tensor<std::uint8_t>& labels, const Where& where,
                                        std::size_t rows) const;
  [[nodiscard]] Tensor<std::uint8_t> gather(const Tensor<std::uint8_t>& images,
                                            const Tensor<std::uint8_t>& labels, const Order& order,
                                            std::size_t first, std::int64_t count,
                                            const Device& loader) const;
  [[nodiscard]] std::size_t steps_together() const;
  std::vector<Future> step(const Where& where, std::size_t rows);
  [[nodiscard]] std::size_t steps_in_plan() const;
  [[nodiscard]] std::vector<std::size_t> rows_of_steps(std::size_t first, std::size_t count) const;
  Future planned_steps(Steps& steps, const Order& order, std::size_t first);
  void forget_plans();
  [[nodiscard]] Order shuffled(std::uint64_t epoch) const;
  [[nodiscard]] Order in_order(std::size_t count) const;
  /// Whether a socket gathers this device's minibatches.
  [[nodiscard]] bool is_fed(std::size_t device) const {
    return devices_[device].kind() == DeviceKind::Gpu && input_ == Input::Streamed;
  }

  const Runtime& runtime_;
  const Hyper hyper_;
  const std::vector<Part> parts_;  // of the gradient, in the order in which they are computed
  const std::vector<Device> devices_;
  Shares shares_;
  std::vector<Network> networks_;
  const Input input_;
  const bool plans_;
  Steps many_, rest_;  // `steps_in_plan` of them, and what is left at the end of a pass
  Order next_order_;   // of `next_epoch_`: shuffled ahead
  std::uint64_t next_epoch_ = 0;
  std::vector<Device> loaders_;  // the socket that prepares data for each device
  bool is_one_sum_ = false;      // all gradients in one message
  Collective group_;
  const float scale_;  // of pixels
  const Tensor<float> offsets_;
  std::size_t train_count_, test_count_;
  Tensor<std::uint8_t> train_images_, train_labels_, test_images_, test_labels_;
  std::vector<Shard> test_;  // loaded once; stays where it is used
};

}  // namespace weft::mlp
