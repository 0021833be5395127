#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "actors/pinned_actor.hpp"
#include "actors/ready_list.hpp"
#include "framework/cpu.hpp"
#include "framework/fabric.hpp"
#include "framework/mailbox.hpp"
#include "framework/spin.hpp"

namespace weft {

class Tracer;
class SocketTeam;

/// One core of a socket: an actor with a mailbox of ready ops. It runs them one after the other,
/// keeps what becomes ready by them and belongs here, and sends the rest to its owners. With
/// nothing to do it takes over ops that a busy neighbour has not started, or helps with a
/// neighbour's `parallel_for`.
class SocketLane final : public Body, public Cpu, public ReadySink {
 public:
  SocketLane(SocketTeam& team, std::uint32_t number);

  bool run_some() override;
  bool prepare_to_park() override;
  void idle_changes(bool idle) override;

  void ready(Op* op) override;
  [[nodiscard]] std::size_t team_size() const override;

  ActorMailbox& mailbox() { return mailbox_; }

 private:
  friend class SocketTeam;

  // A `parallel_for` that other lanes may join.
  struct Shared {
    SpinLock lock;  // guards open, and helpers' arrival
    bool open = false;
    const Op* op = nullptr;  // whose work it is
    Range range{};
    std::size_t n = 0, step = 1;
    std::atomic<std::size_t> next{0};
    std::atomic<std::uint32_t> helpers{0};
    std::exception_ptr error;  // under lock
  };

  void share(std::size_t n, std::size_t grain, Range range) override;
  static void work_on(Shared& shared);
  void execute(Op* op);
  bool is_worth_timing(const KernelCode& code);
  void offer_rest(const Op& op);
  void take_back();
  void adopt_home(Op& op) const;
  void look_for_submissions();
  void set_gathering(bool gathering);
  bool take_from_neighbours();
  bool help_neighbours();

  SocketTeam& team_;
  const std::uint32_t number_;
  ActorMailbox mailbox_;
  ReadyList local_;
  ReadyList offered_;  // what neighbours may take during an op …
  // See look_for_submissions.
  const std::uint64_t first_gather_ticks_, most_gather_ticks_, peek_ticks_;
  std::uint64_t last_look_ = 0, last_take_ = 0, gather_ticks_ = 0;
  std::int64_t submitted_seen_ = 0, submitted_taken_ = 0;  // at the last look, the last take
  std::uint32_t track_ = 0, untimed_ = 0;
  const Op* running_ = nullptr;
  // … as a chain, oldest first; null: taken, or none. Neighbours look at it: a cache line of its
  // own.
  alignas(128) std::atomic<Op*> offered_first_{nullptr};
  std::atomic<bool> gathering_{false};  // lets a burst gather, which is not idle neighbours' either
  alignas(128) Shared shared_;
  std::atomic<bool> sharing_{false};
};

/// The cores of one socket.
class SocketTeam {
 public:
  SocketTeam(Place& place, Fabric& fabric, std::uint32_t cores);

  [[nodiscard]] std::vector<std::unique_ptr<SocketLane>>& lanes() { return lanes_; }

 private:
  friend class SocketLane;
  Place& place_;
  Fabric& fabric_;
  std::vector<std::unique_ptr<SocketLane>> lanes_;
  alignas(64) std::atomic<std::uint32_t> idle_{0};  // lanes that have found nothing for a while
  alignas(64) std::atomic<std::uint32_t> open_jobs_{0};  // `parallel_for`s that can be joined
};

}  // namespace weft
