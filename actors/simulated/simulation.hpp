#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/pinned_actor.hpp"
#include "framework/fair_share.hpp"
#include "framework/program_time.hpp"
#include "framework/virtual_time.hpp"
#include "framework/virtual_waits.hpp"

namespace weft {

struct Fabric;

/// The actors of one runtime on one thread in virtual time: whichever thread of the program waits.
///
/// Actors that were sent something run in the order in which that happened; time goes on to the
/// next event only when none of them has anything to do and no message is on its way to an actor of
/// the program.
class Simulation final : public Steered {
 public:
  /// Something that runs when it is woken, until it has nothing to do.
  class Runnable {
   protected:
    ~Runnable() = default;

   private:
    friend class Simulation;
    virtual void run() = 0;
    std::atomic<bool> is_queued_{false};
  };

  /// `submission_ns`: what submitting an op costs the program; `notice_ns`: from an op's end until
  /// the thread that waits for it goes on.
  Simulation(VirtualTime::Ns submission_ns, VirtualTime::Ns notice_ns);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  VirtualTime& time() { return time_; }
  ProgramTime& program() { return program_; }
  FairShare& share() { return share_; }

  /// Runs the bodies of one actor in virtual time; its mailboxes wake it. All are borrowed.
  void add(std::vector<Body*> bodies, const std::vector<ActorMailbox*>& mailboxes,
           const std::string& name);
  /// `runnable` runs before time goes on. Any thread.
  void wake(Runnable& runnable);

  /// From now on waiting threads move it. `fabric` is borrowed until `stop`.
  void start(Fabric& fabric);
  /// No thread moves it any more.
  void stop();

  bool move(const std::function<bool()>& done, std::int64_t nanoseconds) override;
  [[nodiscard]] std::int64_t now() const override { return time_.now(); }
  void waited() override { program_.noticed(); }
  std::string describe() override;

 private:
  struct Actor;

  Runnable* next();
  void watch_actors();

  VirtualTime time_;
  FairShare share_{time_};
  ProgramTime program_;
  std::vector<std::unique_ptr<Actor>> actors_;
  Fabric* fabric_ = nullptr;

  std::mutex moving_;  // held by the thread that moves it
  std::mutex queue_mutex_;
  std::deque<Runnable*> queue_;

  // For programs whose threads wait for actors of their own.
  std::thread watcher_;
  std::mutex watch_mutex_;
  std::condition_variable watch_ended_;
  bool is_ending_ = false;
  std::atomic<std::uint64_t> moves_{0};
};

}  // namespace weft
