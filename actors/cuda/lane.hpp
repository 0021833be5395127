#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "actors/cuda/device_state.hpp"
#include "framework/op.hpp"
#include "framework/spin.hpp"

namespace weft {
class Tracer;
}

namespace weft::cuda {

class Lane;

/// All lanes of one runtime's GPUs and links, by number. Lanes are added at any time and stay.
class LaneTable {
 public:
  static constexpr std::uint32_t kMostLanes = 4096;
  /// In `Op::lane`: the op is on the member lanes of the GPUs whose bits are set, with one ticket.
  static constexpr std::uint32_t kOnMembers = 1u << 31;
  static constexpr std::uint32_t kMostMembers = 31;

  /// Gives `lane` its number. Throws `DeviceError` beyond `kMostLanes`.
  std::uint32_t add(Lane* lane);
  [[nodiscard]] Lane& at(std::uint32_t number) const {
    return *lanes_[number].load(std::memory_order_acquire);
  }
  /// The lanes of collective operations, one a GPU, in order of the GPUs. Set before the first op.
  void set_member_lanes(std::vector<Lane*> lanes) { member_lanes_ = std::move(lanes); }
  [[nodiscard]] const std::vector<Lane*>& member_lanes() const { return member_lanes_; }

 private:
  std::vector<Lane*> member_lanes_;
  std::atomic<std::uint32_t> count_{0};
  std::array<std::atomic<Lane*>, kMostLanes> lanes_{};
};

/// One CUDA stream as an in-order lane.
///
/// Each op that has been enqueued gets the next *ticket*. Order on the lane costs nothing. Other
/// lanes wait by an event: a *mark* is an event recorded behind some ticket; it serves every op up
/// to that ticket and everyone who waits for one. A mark is recorded where somebody is known to
/// wait or where enough work has gathered, and made up for at the tail of the lane if it is missing
/// when it is needed. What is already implied by an earlier wait is skipped. Nobody is told by the
/// device that something is done: `progress` asks for marks and settles ops in order.
///
/// One thread owns the lane; `make_wait` may be called by any.
class Lane {
 public:
  struct Setup {
    DeviceState* device = nullptr;
    LaneTable* table = nullptr;
    Tracer* tracer = nullptr;  ///< not null: ops are timed on the device
    std::uint32_t track = 0;
    bool is_first = false;  ///< when blocks have room on the device, those of this lane go first
    /// Called before each op settles; null: nothing.
    std::function<void(Op&, bool failed)> before_settle;
    /// A part of an op is done: see `enqueued_part`. Takes over the failure, null if there is none.
    std::function<void(Op&, Failure*, ReadySink&)> part_done;
  };
  explicit Lane(Setup setup);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] DeviceState& device() const { return *setup_.device; }
  /// Ops enqueued and not settled.
  [[nodiscard]] std::size_t queued() const { return in_flight_.size(); }

  /// Makes the stream wait for what `op` waits for. Returns why `op` must fail, counted for the
  /// caller, or null. Then enqueue the work and call `enqueued`. `is_sampled`: the op's time on the
  /// device is told to the placer (`note_run`) before it settles, unless it fails; that costs some
  /// microseconds.
  [[nodiscard]] Failure* begin(Op& op, bool is_sampled = false);
  /// The op's work, or nothing if it has failed, is on the stream: gives it its ticket. Takes over
  /// `failure`. `expected_ns`: how long the device will be at it, about.
  void enqueued(Op& op, Failure* failure, double expected_ns);
  /// The same for the lane's part of an op that is on several lanes: takes `ticket`, which is later
  /// than `last_ticket()`, and reports to `part_done` instead of settling the op.
  void enqueued_part(Op& op, std::uint64_t ticket, double expected_ns);
  [[nodiscard]] std::uint64_t last_ticket() const {
    return issued_.load(std::memory_order_relaxed);
  }

  /// Settles what is done. `quiet`: there is nothing else to do, so look at once and at the tail as
  /// well; else only if the host waits for something, or some time after the last look, for looking
  /// costs about as much as a launch.
  bool progress(ReadySink& sink, bool quiet);

 private:
  // What an op's time on the device is wanted for.
  struct Timing {
    bool is_traced = false, is_sampled = false;
  };
  struct InFlight {
    Op* op;
    std::uint64_t ticket;
    cudaEvent_t started, ended;  // null unless timed
    bool is_part;
    Timing timing;
  };
  struct Mark {
    std::uint64_t ticket;
    cudaEvent_t event;
  };

  void wait_for(const Op& producer);
  void wait_for(Lane& other, std::uint32_t ticket);
  void enqueue(Op& op, std::uint64_t ticket, bool is_part);
  void mark_if_wanted(Op& op, std::uint64_t ticket, double expected_ns);
  [[nodiscard]] std::uint64_t expand(std::uint32_t ticket) const;
  // Makes `waiter` wait; returns the ticket that is implied then.
  std::uint64_t make_wait(std::uint64_t ticket, Lane& waiter);
  bool mark(std::uint64_t ticket);  // with the lock; false: the device is lost
  bool make_event(cudaEvent_t* event);
  [[nodiscard]] const DeviceState* lost_device_of(const Op& producer) const;
  [[nodiscard]] bool device_waits(Op& op) const;
  [[nodiscard]] static bool host_waits(Op& op);
  [[nodiscard]] bool is_due() const;
  void look_at_marks(bool quiet);
  bool settle_done(ReadySink& sink);
  [[nodiscard]] bool has_settled_producers(Op& op, Failure*& cause) const;
  void settle_one(InFlight& entry, Failure* failure, ReadySink& sink);
  void take_times(InFlight& entry, bool failed);
  void record_span(InFlight& entry, bool failed);
  cudaEvent_t timing_event();

  Setup setup_;
  std::uint32_t number_ = 0;
  cudaStream_t stream_ = nullptr;
  std::atomic<std::uint64_t> issued_{0};
  std::uint64_t done_ = 0;
  std::deque<InFlight> in_flight_;   // oldest first
  std::vector<std::uint64_t> seen_;  // by lane number: tickets this lane has waited for
  std::uint64_t urgent_ = 0;         // the host waits for this ticket
  std::uint64_t looked_at_ = 0;      // in ticks of the clock
  double since_mark_ns_ = 0;
  std::uint32_t since_mark_ = 0;

  SpinLock lock_;           // for what follows
  std::deque<Mark> marks_;  // oldest first
  std::vector<cudaEvent_t> spare_;

  std::vector<cudaEvent_t> spare_timing_;
  cudaEvent_t started_ = nullptr;  // of the op being enqueued
  Timing timing_;                  // of the same
  cudaEvent_t base_ = nullptr;     // an event whose time on the host's clock is known
  std::int64_t base_ns_ = 0;
};

}  // namespace weft::cuda
