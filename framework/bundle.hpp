#pragma once

#include <atomic>
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

/// Some ops of a plan that go to their device as one, again and again. Their arguments and scalars
/// stay as they are; where the program sets others, `with` makes a bundle that goes on from this
/// one. Engines run the ops one after the other, or keep with them what lets them do it at once (a
/// CUDA graph). Used by the thread that launches; dropped by any.
class Bundle {
 public:
  /// An op that is not submitted. Bundles that go on from each other share those that stay.
  using Member = std::shared_ptr<Op>;
  /// By member: those that it must come behind, by their numbers, which are lower.
  using Order = std::vector<std::vector<std::uint32_t>>;

  /// What bundles that go on from each other have in common. The actor's, but for what is atomic.
  struct Site {
    static constexpr std::uint32_t kAnyLane = ~std::uint32_t{0};
    /// The lane of its device that it was launched on first, and goes to again.
    std::uint32_t lane = kAnyLane;
    /// What the engine keeps. It holds the members that it refers to.
    std::shared_ptr<void> kept;
    /// A change of a member costs the engine as much as to launch all of them one by one.
    std::atomic<bool> is_dear_to_change{false};
    Cost cost;
    bool is_cost_known = false;
  };

  Bundle() : order_(std::make_shared<Order>()), site_(std::make_shared<Site>()) {}
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  /// Adds an op that is not submitted, which it takes over with its scalars. Not once it is shared.
  void add(Op* op, std::vector<std::uint32_t> behind = {});
  /// The same with other ops in the place of some, by their numbers; takes them over.
  [[nodiscard]] std::shared_ptr<Bundle> with(
      const std::vector<std::pair<std::uint32_t, Op*>>& changed) const;

  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  [[nodiscard]] const Order& order() const { return *order_; }
  [[nodiscard]] Site& site() const { return *site_; }
  /// `forward, gradient (6 ops)`
  [[nodiscard]] std::string name() const;

  /// Of all of them, as their kernels say; worked out once.
  [[nodiscard]] Cost cost() const;

  /// Sees to it that all that the ops write has bytes. Throws `DeviceError` if there are none left.
  void allocate() const;

  /// Runs member `n` by `run(Op&)`. Throws what that throws with the op's name in front.
  template <class Run>
  void run_one(std::size_t n, const Run& run) const {
    Op& op = *members_[n];
    try {
      run(op);
    } catch (const DeviceError& error) {
      throw DeviceError(op.code->name + ": " + error.what());
    } catch (const std::exception& error) {
      throw std::runtime_error(op.code->name + ": " + error.what());
    }
  }
  /// All of them, in order.
  template <class Run>
  void run_each(const Run& run) const {
    for (std::size_t n = 0; n < members_.size(); ++n) run_one(n, run);
  }

 private:
  std::vector<Member> members_;
  std::shared_ptr<Order> order_;
  std::shared_ptr<Site> site_;
};

/// The bundle of an op that is one.
Bundle& bundle_of(Op& op);
/// The kernel of bundles: its scalar is a `std::shared_ptr<Bundle>`. Engines add their variants.
KernelCode& bundle_kernel();

}  // namespace weft
