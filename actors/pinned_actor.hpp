#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/mailbox.hpp"

namespace caf {
class actor_system;
}

namespace weft {

/// What an actor does with its thread: state and decisions, no CAF. Several bodies may share one
/// actor (a GPU and its links).
class Body {
 public:
  virtual ~Body() = default;
  /// Does what there is to do and returns whether there was anything. Never waits.
  virtual bool run_some() = 0;
  /// About to park: from now on a push must send a message. False: there is something to do first.
  virtual bool prepare_to_park() = 0;
  /// Something is under way that nobody will report: look again instead of parking.
  [[nodiscard]] virtual bool must_look_again() const { return false; }
  /// The actor's thread has begun or is about to end.
  virtual void thread_begins() {}
  virtual void thread_ends() {}
  /// Nothing has been found for some time, or work was found again.
  virtual void idle_changes(bool /*idle*/) {}
};

/// Lets each body do what there is to do; returns whether there was anything. What one throws is
/// logged under the actor's name: no op's failure comes this way, and others' ops are in its hands.
bool run_some(const std::vector<Body*>& bodies, const std::string& actor);
/// Makes each body ready for its actor to park. False: one has something to do first.
bool prepare_to_park(const std::vector<Body*>& bodies);

/// A mailbox whose owner is woken by a CAF message.
class ActorMailbox final : public Mailbox {
 public:
  explicit ActorMailbox(Admission* admission) : Mailbox(admission) {}
  /// How to wake the owner. Set before the first push.
  void set_waker(std::function<void()> waker) { waker_ = std::move(waker); }

 private:
  void wake() override {
    if (waker_) waker_();
  }
  std::function<void()> waker_;
};

/// Where an actor's thread runs and how long it spins.
struct PinnedActorOptions {
  std::string name;
  std::vector<int> cpus;      ///< OS indices of where it may run; empty: anywhere
  bool must_not_wait = true;  ///< submissions and waits on this thread never block
};

/// A detached CAF actor with a thread of its own. It looks at its bodies without a system call,
/// spins for about as long as a wake costs after the last work, then parks in CAF's mailbox until a
/// message comes.
class PinnedActor {
 public:
  /// Starts the thread. The bodies are borrowed; they outlive `join`.
  PinnedActor(caf::actor_system& system, std::vector<Body*> bodies, PinnedActorOptions options);
  /// Stops and joins.
  ~PinnedActor();
  PinnedActor(const PinnedActor&) = delete;
  PinnedActor& operator=(const PinnedActor&) = delete;

  /// Sends the message that ends a park. Any thread.
  void wake();
  /// Asks it to end once its bodies have nothing to do, and waits for it. Idempotent.
  void join();

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace weft
