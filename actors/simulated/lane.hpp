#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "actors/emulated/options.hpp"
#include "actors/simulated/simulation.hpp"
#include "framework/fair_share.hpp"
#include "framework/op.hpp"

namespace weft {

class Tracer;

/// One in-order queue of a simulated device or link: takes ops as they were issued, starts each
/// when the one before has ended and its producers are done, lets its modelled time pass, settles
/// it. Kernels compute and copies move their bytes at the start of that time, unless the simulation
/// is without data.
class SimulatedLane : public Simulation::Runnable {
 public:
  struct Setup {
    Simulation* simulation = nullptr;
    std::string name;                        ///< `gpu0 compute 1`
    std::string device;                      ///< for messages
    const EmulatedOptions* hooks = nullptr;  ///< borrowed: faults and delays for tests
    bool has_data = true;
    Tracer* tracer = nullptr;
    std::uint32_t track = 0;
    const std::atomic<bool>* lost = nullptr;  ///< the device is gone; null: it cannot be
  };
  explicit SimulatedLane(Setup setup) : setup_(std::move(setup)), flowing_(*this), delay_(*this) {}

  /// Puts an op at the end; it does not start before `ready_at`.
  void enqueue(Op& op, VirtualTime::Ns ready_at);
  [[nodiscard]] std::size_t queued() const { return queue_.size(); }

 protected:
  /// How long an op takes: some time that nothing changes, then an amount over shared resources.
  struct Work {
    VirtualTime::Ns fixed = 0;
    double amount = 0;
    std::vector<FairShare::Use> uses;
    double limit = FairShare::kUnlimited;
  };
  ~SimulatedLane() = default;

  [[nodiscard]] const Setup& setup() const { return setup_; }
  [[nodiscard]] VirtualTime& time() const { return setup_.simulation->time(); }

 private:
  struct Flowing final : FairShare::Flow {
    explicit Flowing(SimulatedLane& given) : lane(given) {}
    void flowed() override { lane.end(); }
    SimulatedLane& lane;
  };
  struct Delay final : VirtualTime::Event {
    explicit Delay(SimulatedLane& given) : lane(given) {}
    void happens() override { lane.delay_over(); }
    SimulatedLane& lane;
  };
  struct Queued {
    Op* op = nullptr;
    VirtualTime::Ns ready_at = 0;
  };

  /// Makes ready for an op that is about to start; why it cannot, else null.
  virtual Failure* prepare(Op& /*op*/) { return nullptr; }
  /// What an op takes here; `work` is empty before.
  virtual void estimate(Op& op, Work& work) = 0;
  /// Computes or moves the op's data; may throw.
  virtual void execute(Op& op) = 0;
  /// The op is over, before it settles and after.
  virtual void ends(Op& /*op*/, bool /*ran*/, VirtualTime::Ns /*start*/) {}
  virtual void ended(std::int64_t /*bytes*/) {}

  void run() override;
  bool has_producers_done(Op& op);
  Failure* failure_of_producers(Op& op) const;
  Failure* try_execute(Op& op);
  Failure* try_estimate(Op& op);
  void delay_over();
  void flow();
  void end();

  const Setup setup_;
  std::deque<Queued> queue_;
  Work work_;
  Flowing flowing_;
  Delay delay_;
  Failure* failure_ = nullptr;  // of the op that runs
  VirtualTime::Ns start_ = 0;
  const Op* awaited_ = nullptr;  // the producer that will wake the lane
  bool is_running_ = false, is_refused_ = false;
};

}  // namespace weft
