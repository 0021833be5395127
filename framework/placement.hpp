#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/placement_window.hpp"

namespace weft {

/// A device that could run an op, as its submitter sees it. Times are in seconds from now.
struct PlacementOption {
  const Place* place = nullptr;
  double ready = 0;   ///< until it has run what it has been given
  double inputs = 0;  ///< until the arguments can be there: who computes them, and the links' load
  double run = 0;     ///< what the op takes there: learnt, or by the device's published figures
  std::size_t missing_bytes = 0;  ///< of arguments that are not in its memory

  [[nodiscard]] double finish() const { return (ready > inputs ? ready : inputs) + run; }
};

/// Decides where an op of `Runtime::anywhere` runs. Called in the submitting thread, by several at
/// once; must not submit. A program's own derives from this and is given to `anywhere`.
class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  /// The index of the device for the next op. `options`: at least one, those that have a variant of
  /// the kernel, are not lost, and whose memory can hold the arguments; always in the same order.
  virtual std::size_t choose(std::span<const PlacementOption> options) = 0;
  /// False: it looks at places only, and nothing else of the options is worked out.
  [[nodiscard]] virtual bool needs_estimates() const { return true; }
  /// True: ops wait in the window of submissions, unplaced, until the chosen device is about to run
  /// out of work. What a device did not get in time, another takes: so devices that slow down, and
  /// costs that nobody knew, do little harm. Each op then costs a way through the gate's actor.
  [[nodiscard]] virtual bool binds_late() const { return false; }
  /// Asked before `choose`: whether this op binds late though not all do. As `choose` otherwise.
  virtual bool lets_wait(std::span<const PlacementOption> /*options*/) { return false; }
  /// Not 0: of those that bind late, up to so many ops that wait are given to `plan` together.
  [[nodiscard]] virtual std::size_t plans_ahead() const { return 0; }
  /// Where the ops of the window should run, in the order in which devices are to be given them; an
  /// op comes behind those it needs. What is left out waits for the next plan, but for the oldest,
  /// which `choose` places then. On one thread.
  [[nodiscard]] virtual std::vector<PlannedOp> plan(const PlacementWindow& /*window*/) {
    return {};
  }
};

/// Always the same device, by name; where it cannot run an op, the first that can.
class FixedPlacement final : public PlacementPolicy {
 public:
  explicit FixedPlacement(std::string device) : device_(std::move(device)) {}
  [[nodiscard]] std::string name() const override { return "fixed:" + device_; }
  std::size_t choose(std::span<const PlacementOption> options) override;
  [[nodiscard]] bool needs_estimates() const override { return false; }

 private:
  const std::string device_;
};

/// One after the other.
class RoundRobinPlacement final : public PlacementPolicy {
 public:
  [[nodiscard]] std::string name() const override { return "round_robin"; }
  std::size_t choose(std::span<const PlacementOption> options) override;
  [[nodiscard]] bool needs_estimates() const override { return false; }

 private:
  std::atomic<std::uint32_t> next_{0};
};

/// Where the fewest bytes must be brought; of equals, where the op ends first.
class NearestPlacement final : public PlacementPolicy {
 public:
  [[nodiscard]] std::string name() const override { return "nearest"; }
  std::size_t choose(std::span<const PlacementOption> options) override;
};

/// Where the op ends first (the second half of HEFT: Topcuoglu, Hariri, Wu, IEEE Transactions on
/// Parallel and Distributed Systems 13, 2002).
class EarliestFinishPlacement final : public PlacementPolicy {
 public:
  [[nodiscard]] std::string name() const override { return "earliest_finish"; }
  std::size_t choose(std::span<const PlacementOption> options) override;
};

/// As `EarliestFinishPlacement`, decided when the device is about to run out of work.
class LatePlacement final : public PlacementPolicy {
 public:
  [[nodiscard]] std::string name() const override { return "late"; }
  std::size_t choose(std::span<const PlacementOption> options) override {
    return earliest_.choose(options);
  }
  [[nodiscard]] bool binds_late() const override { return true; }

 private:
  EarliestFinishPlacement earliest_;
};

/// Looks ahead: plans what waits together, by `plan_by_heft`, and gives each device what should
/// begin there next when it is about to run out of work. A plan is made anew every few ops.
class HeftPlacement final : public PlacementPolicy {
 public:
  /// `ahead`: how many ops a plan looks at; a plan's time goes with it.
  explicit HeftPlacement(std::size_t ahead = 64) : ahead_(ahead) {}
  [[nodiscard]] std::string name() const override { return "heft"; }
  /// Of what cannot wait: as `EarliestFinishPlacement`.
  std::size_t choose(std::span<const PlacementOption> options) override {
    return earliest_.choose(options);
  }
  [[nodiscard]] bool binds_late() const override { return true; }
  [[nodiscard]] std::size_t plans_ahead() const override { return ahead_; }
  [[nodiscard]] std::vector<PlannedOp> plan(const PlacementWindow& window) override {
    return plan_by_heft(window);
  }

 private:
  const std::size_t ahead_;
  EarliestFinishPlacement earliest_;
};

/// The usual one: ops that are worth a look ahead wait in the window and are planned, as by
/// `HeftPlacement`; short ones go at once where they end first.
class AutoPlacement final : public PlacementPolicy {
 public:
  [[nodiscard]] std::string name() const override { return "auto"; }
  std::size_t choose(std::span<const PlacementOption> options) override {
    return ahead_.choose(options);
  }
  bool lets_wait(std::span<const PlacementOption> options) override;
  [[nodiscard]] std::size_t plans_ahead() const override { return ahead_.plans_ahead(); }
  [[nodiscard]] std::vector<PlannedOp> plan(const PlacementWindow& window) override {
    return ahead_.plan(window);
  }

 private:
  HeftPlacement ahead_;
};

/// `auto`, `earliest_finish`, `heft`, `late`, `nearest`, `round_robin` or `fixed:gpu0`. Throws
/// `DeviceError`.
std::unique_ptr<PlacementPolicy> make_placement(const std::string& text);

}  // namespace weft
