#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framework/failure.hpp"
#include "framework/kernel_code.hpp"
#include "framework/op.hpp"

namespace weft {

/// Some ops of a plan that go to their device as one, again and again: their arguments and scalars
/// stay as they are. Engines run them one after the other, or keep with them what lets them do it
/// at once (a CUDA graph). Used by the thread that launches; dropped by any.
class Bundle {
 public:
  Bundle() = default;
  ~Bundle();
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  /// Adds an op that is not submitted, which it takes over with its scalars.
  void add(Op* op) { ops_.push_back(op); }
  [[nodiscard]] const std::vector<Op*>& ops() const { return ops_; }
  /// `forward, gradient (6 ops)`
  [[nodiscard]] std::string name() const;

  /// Of all of them, as their kernels say; worked out once.
  [[nodiscard]] Cost cost();

  /// Sees to it that all that the ops write has bytes. Throws `DeviceError` if there are none left.
  void allocate();

  static constexpr std::uint32_t kAnyLane = ~std::uint32_t{0};
  /// The lane of its device that it was launched on first, and goes to again; the actor's.
  std::uint32_t lane = kAnyLane;
  /// Runs all of them by `run(Op&)`, in order. Throws what that throws with the op's name in front.
  template <class Run>
  void run_each(const Run& run) {
    for (Op* op : ops_) try {
        run(*op);
      } catch (const DeviceError& error) {
        throw DeviceError(op->code->name + ": " + error.what());
      } catch (const std::exception& error) {
        throw std::runtime_error(op->code->name + ": " + error.what());
      }
  }

  /// What the engine keeps; its own.
  std::shared_ptr<void> kept;

 private:
  std::vector<Op*> ops_;
  Cost cost_;
  bool is_cost_known_ = false;
};

/// The bundle of an op that is one.
Bundle& bundle_of(Op& op);
/// The kernel of bundles: its scalar is a `std::shared_ptr<Bundle>`. Engines add their variants.
KernelCode& bundle_kernel();

}  // namespace weft
