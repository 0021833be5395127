#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "framework/small_vector.hpp"
#include "framework/virtual_time.hpp"

namespace weft {

/// Flows that share resources in virtual time: each moves an amount (bytes, seconds of a device)
/// over some resources at once, no faster than its own limit. Where flows meet, the rates are
/// max-min fair: nobody can get more without somebody who has no more getting less (Bertsekas,
/// Gallager: Data Networks, 6.5.2).
///
/// Rates change only when a flow begins or ends or its limit is set, and only among flows that
/// share a resource with it, directly or through others. One thread.
class FairShare {
 public:
  /// A resource that a flow needs: so many of its units for each unit that the flow moves.
  struct Use {
    std::uint32_t resource = 0;
    double units = 1;
  };

  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  class Flow : public VirtualTime::Event {
   public:
    [[nodiscard]] bool is_flowing() const { return is_flowing_; }
    /// Amount per second at present.
    [[nodiscard]] double rate() const { return rate_; }

   protected:
    ~Flow() = default;

   private:
    friend class FairShare;
    void happens() override;
    /// All of it has passed.
    virtual void flowed() = 0;

    FairShare* share_ = nullptr;
    SmallVector<Use, 8> uses_;
    double remaining_ = 0, limit_ = kUnlimited, rate_ = 0;
    VirtualTime::Ns updated_ = 0;
    std::uint64_t seen_ = 0;  // by the last search that came here
    bool is_flowing_ = false, is_dirty_ = false, is_fixed_ = false;
  };

  explicit FairShare(VirtualTime& time) : time_(time) {}
  FairShare(const FairShare&) = delete;
  FairShare& operator=(const FairShare&) = delete;

  /// A resource that passes `capacity` > 0 a second, shared by the flows over it. Returns its
  /// number.
  std::uint32_t add_resource(double capacity);
  [[nodiscard]] double capacity(std::uint32_t resource) const {
    return resources_[resource].capacity;
  }
  /// Units a second that are taken of it at present.
  [[nodiscard]] double load(std::uint32_t resource) const;
  /// Units that flows over it have been started with so far.
  [[nodiscard]] double passed(std::uint32_t resource) const { return resources_[resource].passed; }

  /// Starts a flow, which is not flowing, over the resources it uses, each once, at most at `limit`
  /// a second; one of both must bound it. `flowed` is called when `amount` has passed.
  void start(Flow& flow, double amount, std::span<const Use> uses, double limit = kUnlimited);
  /// Changes the limit of a flow that is flowing.
  void set_limit(Flow& flow, double limit);

  /// Works out the rates that changed. Before time goes on.
  void update() {
    if (!dirty_.empty()) update_dirty();
  }

 private:
  struct Resource {
    double capacity = 0;
    std::vector<Flow*> flows;
    std::uint64_t seen = 0;
    double passed = 0;
    double left = 0;         // while rates are worked out
    double most = 0;         // that `wanted` was when it was added up
    double wanted = 0;       // units for each unit of all flows without a rate yet …
    std::uint32_t open = 0;  // … which are so many
  };

  void update_dirty();
  void collect(Flow& first);
  void share_out();
  void fix(Flow& flow, double rate);
  void sum_up(Resource& resource);
  void set_rate(Flow& flow, double rate);
  void mark(Flow& flow);
  void leave(Flow& flow);
  [[nodiscard]] double alone(const Flow& flow) const;

  VirtualTime& time_;
  std::vector<Resource> resources_;
  std::vector<Flow*> dirty_;
  std::uint64_t search_ = 0;
  std::vector<Flow*> flows_;          // of the search
  std::vector<std::uint32_t> found_;  // its resources
};

}  // namespace weft
