#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/device_timeline.hpp"
#include "framework/placement.hpp"
#include "framework/run_costs.hpp"
#include "framework/small_vector.hpp"
#include "framework/spin.hpp"
#include "framework/submit.hpp"

namespace weft {

/// What a runtime knows of a device before anything has run there.
struct DeviceForecast {
  /// Names all that makes run times comparable: `cuda NVIDIA H200 fp32`.
  std::string model;
  std::uint32_t width = 1;      ///< ops it runs at a time
  double flops_per_second = 0;  ///< published or given, of all that it runs at a time; 0: unknown
  /// Seconds of an op by published or given figures, until runs are known.
  std::function<double(Op&)> assumed;
};

/// Places ops for their submitters, who each decide for themselves: what runs took so far, when
/// devices will be ready, what links have queued is all they share. Any thread.
class Placer {
 public:
  /// `devices`: one for each of the fabric's places. `now`: seconds on the devices' clock.
  Placer(Fabric& fabric, std::vector<DeviceForecast> devices, std::function<double()> now);

  /// Submits `call`, whose place is open, where `policy` says. As `weft::submit` otherwise.
  Op* submit(const Call& call, PlacementPolicy& policy);

  /// The device for a call that has waited for one, by its policy; null: the device it would be has
  /// enough to do. The call's place and scalars are not looked at: `trial` has them.
  Place* try_place(const Call& call, Op& trial, PlacementPolicy& policy);
  /// A call that waits for a device, with its op as `try_place` takes it, and the others it is
  /// behind besides its tensors, by their positions.
  struct Waiting {
    Call call;
    Op* trial = nullptr;
    std::vector<std::uint32_t> after;
  };
  struct Given {
    PlannedOp planned;
    double run = 0;  ///< seconds it takes there
  };
  /// What `policy` plans for those, the oldest first, of `all` that wait. A planned device is the
  /// place's index.
  std::vector<Given> plan(std::span<const Waiting> waiting, std::size_t all,
                          PlacementPolicy& policy);
  /// Whether a call may be given to the device: it has not enough to do, or nothing to do for one
  /// that `is_far` from its begin.
  [[nodiscard]] bool has_room(std::uint32_t device, bool is_far = false) const;
  /// Gives the call, which has waited, to a device by its plan.
  Place* give_planned(const Call& call, Op& trial, std::uint32_t device);
  /// An op that `try_place` found a device for does not go there now.
  void take_back(const Place& place);
  /// An op that `try_place` found a device for has settled: there may be room for another.
  void has_settled(const Place& place);

  /// What the call would be on a device: what its run time goes with.
  [[nodiscard]] OpForecast forecast(const Call& call, const Place& place);
  /// Seconds that takes by what is known now.
  [[nodiscard]] double seconds(const KernelCode& code, const OpForecast& forecast,
                               const Place& place);
  /// Flops per second of a device that nothing has run on; 0: unknown.
  [[nodiscard]] double published_speed(const Place& place) const {
    return devices_[place.index]->forecast.flops_per_second;
  }

  /// An op ran for so long. By the engine, before the op settles. Must not throw.
  void ran(Op& op, double seconds);

  [[nodiscard]] RunCosts& costs() { return costs_; }

 private:
  struct Device {
    DeviceForecast forecast;
    std::size_t model = 0;
    SpinLock lock;
    DeviceTimeline timeline;  // with the lock
    std::atomic<double> ready_at{0};
    std::atomic<double> corrected_at{-1};
    std::atomic<std::uint32_t> given_late{0};  // by `try_place`, not settled
    // Its run times by those of its model, smoothed: one of several alike may be slower.
    std::atomic<double> pace{1};
    bool is_one_of_several = false;  // of its model
    explicit Device(DeviceForecast given) : forecast(std::move(given)), timeline(forecast.width) {}
    [[nodiscard]] double assumed(Op& op) const {
      return forecast.assumed ? forecast.assumed(op) : 0;
    }
    void note_pace(double ratio) {
      constexpr double kSmooth = 0.125, kMost = 32;
      const double before = pace.load(std::memory_order_relaxed);
      pace.store(before + kSmooth * (std::clamp(ratio, 1 / kMost, kMost) - before),
                 std::memory_order_relaxed);
    }
  };

  class WindowMaker;
  using Options = SmallVector<PlacementOption, 16>;
  [[nodiscard]] bool fits(const Place& place, const Call& call, std::size_t bytes) const;
  [[nodiscard]] std::size_t bytes_of(const Call& call) const;
  void list_options(const Call& call, Options& options) const;
  void estimate(const Call& call, Op& trial, double now, Options& options);
  // A copy: when it can begin, behind what its links have queued, and what it takes then.
  struct Transfer {
    double begins, takes;
  };
  // The one by which the value is in `memory` soonest; nothing if there is no value or no way:
  // submission says so.
  [[nodiscard]] Transfer cheapest_copy(const TensorState& tensor, std::uint32_t memory,
                                       std::size_t bytes) const;
  void give(const Call& call, const PlacementOption& chosen, double now);
  // Null, if it may: it binds late.
  Place* choose(const Call& call, Op& trial, PlacementPolicy& policy, bool may_wait);
  // With the device's lock.
  static void correct(Device& device, const Place& place, double now);

  Fabric& fabric_;
  const std::function<double()> now_;
  std::vector<std::unique_ptr<Device>> devices_;
  RunCosts costs_;
  std::size_t least_budget_ = std::numeric_limits<std::size_t>::max();  // of places' memories
};

/// Whether somebody wants to know how long the op runs: it is a kernel's, and its runtime has a
/// placer.
[[nodiscard]] bool wants_run(Op& op);

/// Tells the placer of the op's runtime, if it has one that wants to know, how long it ran.
void note_run(Op& op, double seconds);

}  // namespace weft
